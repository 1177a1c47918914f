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


def folded(changes: Sequence[Change], key: Sequence[str]) -> tuple[Folded, ...]:
    """Changes in their order, as far as the order matters.

    A row that takes the place of another one with the same key has its own id from then on, so that
    a later removal of the other one removes nothing. A correction may have another key than the
    result that it corrects, whose row is removed. If that row is of the same changes, and may have
    taken the place of another one, it has to be stored before it is removed.

    Args:
        changes: in their order.
        key: the fields that make the key of a row; none: its id is the key.

    Returns:
        What is to be done one after the other; one for most changes.
    """
    done: list[Folded] = []
    rows: dict[tuple[Json, ...], Result] = {}
    stored: set[str] = set()
    removed: dict[str, None] = {}
    for change in changes:
        if isinstance(change, Removal) or change.corrects:
            if not key:
                rows.pop((change.id,), None)
            elif change.id in stored:
                done.append(Folded(tuple(removed), tuple(rows.values())))
                rows, stored, removed = {}, set(), {}
            removed[change.id] = None
        if isinstance(change, Result):
            value = tuple(change.fields.get(name) for name in key) if key else (change.id,)
            rows[value] = change
            stored.add(change.id)
    return (*done, Folded(tuple(removed), tuple(rows.values())))


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
