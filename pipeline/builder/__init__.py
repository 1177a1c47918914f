"""Networks described in Python: the same documents as in YAML, checked by the same loader.

`NetworkBuilder` begins a network and has its streams from outside and its outputs; `boxes` has one
function for each kind of box. Nothing is computed or checked while a network is described, but for
what Python itself needs: a description becomes the tree that a YAML document has, and only that is
checked. A mistake is told with the file and line of the call.
"""

from pipeline.builder.network import NetworkBuilder
from pipeline.builder.options import Duration, Limit, Session, Window, Within
from pipeline.builder.streams import Box, External, Stream

__all__ = [
    "Box",
    "Duration",
    "External",
    "Limit",
    "NetworkBuilder",
    "Session",
    "Stream",
    "Window",
    "Within",
]
