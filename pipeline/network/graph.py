"""Topological order of boxes, and the loops among them."""

from collections.abc import Mapping, Sequence


def in_order(
    reads: Mapping[str, Sequence[str]],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Boxes in topological order, ties in the order given, and the loops among them.

    Args:
        reads: box → its inputs; names of other things are ignored.

    Returns:
        The boxes neither in nor behind a loop, in order; then each loop as the boxes in it,
        beginning with the one written first.
    """
    needs = {box: {r for r in reads[box] if r in reads} for box in reads}
    done: list[str] = []
    while True:
        ready = next((b for b in reads if b not in done and needs[b] <= set(done)), None)
        if ready is None:
            break
        done.append(ready)
    return tuple(done), _loops({b: needs[b] for b in reads if b not in done}, tuple(reads))


def _loops(needs: Mapping[str, set[str]], order: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """One loop for each group of boxes that feed each other."""
    found: list[tuple[str, ...]] = []
    on_a_loop: set[str] = set()
    for box in needs:
        if box in on_a_loop:
            continue
        loop = _way_back(box, needs, order)
        if loop:
            found.append(loop)
            on_a_loop.update(_reachable(box, needs) & _reaching(box, needs))
    return tuple(found)


def _way_back(
    box: str, needs: Mapping[str, set[str]], order: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The shortest loop from a box along its inputs to itself, in the direction of the data."""
    paths: list[tuple[str, ...]] = [(box,)]
    seen: set[str] = set()
    for path in paths:  # grows while it is walked: breadth first
        for source in sorted(needs.get(path[-1], ()), key=order.index):
            if source == box:
                return (box, *reversed(path[1:]))
            if source not in seen:
                seen.add(source)
                paths.append((*path, source))
    return None


def _reachable(box: str, needs: Mapping[str, set[str]]) -> set[str]:
    found, todo = {box}, [box]
    while todo:
        for source in needs.get(todo.pop(), ()):
            if source not in found:
                found.add(source)
                todo.append(source)
    return found


def _reaching(box: str, needs: Mapping[str, set[str]]) -> set[str]:
    return {other for other in needs if box in _reachable(other, needs)}
