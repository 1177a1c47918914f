"""Connectors of your own: docs/connectors/contracts.md."""

from connectors.catalogue import Context, Kind
from connectors.conformance.crashing import Steps
from connectors.conformance.sinks import SinkWorld, check_sink
from connectors.conformance.sources import SourceWorld, check_source
from connectors.guarantee import Guarantee
from connectors.sink import (
    Batch,
    Change,
    Marker,
    Refuse,
    RefusedChange,
    Removal,
    Result,
    Sink,
)
from connectors.source import (
    Chunk,
    Limit,
    Position,
    Positions,
    Refused,
    Row,
    Source,
    SourceChangedError,
    SplitId,
)

__all__ = [
    "Batch",
    "Change",
    "Chunk",
    "Context",
    "Guarantee",
    "Kind",
    "Limit",
    "Marker",
    "Position",
    "Positions",
    "Refuse",
    "Refused",
    "RefusedChange",
    "Removal",
    "Result",
    "Row",
    "Sink",
    "SinkWorld",
    "Source",
    "SourceChangedError",
    "SourceWorld",
    "SplitId",
    "Steps",
    "check_sink",
    "check_source",
]
