"""Networks described in Python: the same documents as in YAML, checked by the same loader.

`NetworkBuilder` contains a network's settings, external streams and outputs; `boxes` has one
function for each kind of box. Nothing is computed or checked while a network is described, except
what Python itself needs: a description becomes the same tree as a YAML document, and only that is
checked. A mistake is reported with the file and line of the call.
"""

from pipeline.builder.network import NetworkBuilder
from pipeline.builder.options import (
    Availability,
    AvailabilityPolicy,
    Duration,
    Limit,
    Placement,
    PriorityLevel,
    RecoveryKind,
    Reliability,
    ReliabilityMode,
    Session,
    Size,
    Window,
    Within,
)
from pipeline.builder.streams import Box, External, Stream

__all__ = [
    "Availability",
    "AvailabilityPolicy",
    "Box",
    "Duration",
    "External",
    "Limit",
    "NetworkBuilder",
    "Placement",
    "PriorityLevel",
    "RecoveryKind",
    "Reliability",
    "ReliabilityMode",
    "Session",
    "Size",
    "Stream",
    "Window",
    "Within",
]
