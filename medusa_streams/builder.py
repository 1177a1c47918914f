"""Networks described in Python: docs/reference/builder.md."""

from pipeline.builder import (
    Availability,
    Box,
    Duration,
    External,
    Limit,
    NetworkBuilder,
    Placement,
    Reliability,
    ReliabilityMode,
    Session,
    Size,
    Stream,
    Window,
    Within,
    boxes,
)

__all__ = [
    "Availability",
    "Box",
    "Duration",
    "External",
    "Limit",
    "NetworkBuilder",
    "Placement",
    "Reliability",
    "ReliabilityMode",
    "Session",
    "Size",
    "Stream",
    "Window",
    "Within",
    "boxes",
]
