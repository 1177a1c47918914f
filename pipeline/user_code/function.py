"""A function of a user as plain data: all that is needed to call it, wherever that is."""

from dataclasses import dataclass

from pipeline.network.types import Columns


@dataclass(frozen=True, slots=True)
class Function:
    """A pure function from a record batch to a record batch.

    Args:
        name: what it is called in the document: `alerts.py:classify` or `package.module:classify`.
        source: the text of the file; empty for an importable module.
        columns: what it has to return.
        timeout_ms: how long one call may take.
    """

    name: str
    source: str
    columns: Columns
    timeout_ms: int
