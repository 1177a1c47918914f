"""Results of an output, stable and tentative ones: docs/consumers.md."""

from pipeline.reader.opening import open_reader
from pipeline.reader.reader import Reader
from pipeline.reader.results import Handler, Position, Stable, Start, Tentative, Undone

__all__ = [
    "Handler",
    "Position",
    "Reader",
    "Stable",
    "Start",
    "Tentative",
    "Undone",
    "open_reader",
]
