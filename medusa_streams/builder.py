"""Networks described in Python: docs/reference/builder.md."""

from pipeline.builder import (
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
