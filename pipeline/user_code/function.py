"""A user-defined function as plain data: everything needed to call it on any machine."""

from dataclasses import dataclass

from pipeline.network.types import Columns


@dataclass(frozen=True, slots=True)
class Function:
    """A pure function from a record batch to a record batch.

    Args:
        name: its name in the document: `alerts.py:classify` or `package.module:classify`.
        source: the text of the file; empty for an importable module.
        columns: the declared columns of its result.
        timeout_ms: time limit of one call.
    """

    name: str
    source: str
    columns: Columns
    timeout_ms: int
