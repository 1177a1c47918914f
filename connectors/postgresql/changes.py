"""What a batch does to a table, and which of its changes the table refuses. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.sink import Change, Removal, Result
from schemas.json_value import Json


@dataclass(frozen=True, slots=True)
class Folded:
    """Changes as two statements: first rows are removed by their ids, then rows are stored.

    Args:
        removed: ids of earlier results, of which no row is left.
        rows: no two have one key.
    """

    removed: tuple[str, ...]
    rows: tuple[Result, ...]


def folded(changes: Sequence[Change], key: Sequence[str]) -> Folded:
    """Changes in their order, as far as the order matters.

    A row that takes the place of another one with the same key has its own id from then on, so that
    a later removal of the other one removes nothing. A correction may have another key than the
    result that it corrects, whose row is removed.

    Args:
        changes: in their order.
        key: the fields that make the key of a row; none: its id is the key.
    """
    rows: dict[tuple[Json, ...], Result] = {}
    keys_of: dict[str, dict[tuple[Json, ...], None]] = {}
    removed: dict[str, None] = {}
    for change in changes:
        if isinstance(change, Removal) or change.corrects:
            removed[change.id] = None
            for value in keys_of.pop(change.id, ()):
                if (row := rows.get(value)) is not None and row.id == change.id:
                    del rows[value]
        if isinstance(change, Result):
            value = tuple(change.fields.get(name) for name in key) if key else (change.id,)
            rows[value] = change
            keys_of.setdefault(change.id, {})[value] = None
    return Folded(tuple(removed), tuple(rows.values()))


Attempt = Callable[[Sequence[Change]], str | None]
"""Makes changes, all or none; returns why one of them is refused. None: they are made."""


def apply(changes: Sequence[Change], attempt: Attempt) -> list[tuple[Change, str]]:
    """Make all changes in their order, except those that are refused.

    Changes that fail together are tried in halves, so one refused row among n costs about
    2 log2(n) attempts.

    Returns:
        The refused ones, with the reason of each.
    """
    if not changes:
        return []
    why = attempt(changes)
    if why is None:
        return []
    if len(changes) == 1:
        return [(changes[0], why)]
    middle = len(changes) // 2
    return [*apply(changes[:middle], attempt), *apply(changes[middle:], attempt)]
