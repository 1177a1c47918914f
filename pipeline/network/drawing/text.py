"""A picture as text for a terminal: a line for each stream and box, and rails between them.

A stream runs down in a column of its own until the last box that reads it. A box is drawn to the
right of all its inputs, or below an input that ends.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.network.drawing.picture import Part, Picture


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters of a drawing."""

    stream: str
    box: str
    down: str
    across: str
    turn: str
    """From above to the right."""
    branch: str
    """From above to the right and on down."""
    meet: str
    """From above and from the left to the right."""
    cross: str
    """All four ways."""
    arrow: str
    corner: str
    """Where a border begins."""


LINES: Final = Signs("○", "●", "│", "─", "└", "├", "┴", "┼", "→", "┌")
PLAIN: Final = Signs("o", "*", "|", "-", "`", "+", "+", "+", "->", ".")
"""For terminals with ASCII only."""


def as_text(picture: Picture, signs: Signs = PLAIN) -> str:
    """A picture; no line feed at the end.

    Topics are in brackets: behind a stream its source, behind an arrow the topic that a box
    writes.
    """
    lines = [f"network {picture.network}"]
    for part in picture.parts:
        drawn = list(_part(part, signs))
        if not part.name:
            lines.extend(f"  {line}" for line in drawn)
            continue
        head = f"{signs.corner}{signs.across} {part.name} "
        width = max((len(line) for line in drawn), default=0) + 3
        lines.append("")
        lines.append(head + signs.across * max(0, width - len(head)))
        lines.extend(f"{signs.down}  {line}" for line in drawn)
        lines.append(signs.turn + signs.across * max(0, width - 1))
    return "\n".join(lines)


def _part(part: Part, signs: Signs) -> Iterator[str]:
    what = [
        *(f"[{inflow.topic}]" for inflow in part.inflows),
        *(f"{box.kind} {', '.join(box.inputs)}" for box in part.boxes),
    ]
    ends: list[tuple[str, ...]] = [()] * len(part.inflows) + [box.topics for box in part.boxes]
    reads: dict[str, Sequence[str]] = {inflow.name: () for inflow in part.inflows}
    reads |= {box.name: box.inputs for box in part.boxes}
    columns = [_padded(column) for column in (_Rails(reads, signs).rows(), list(reads), what)]
    for *cells, topics in zip(*columns, ends, strict=True):
        to = f"  {signs.arrow} {', '.join(f'[{topic}]' for topic in topics)}" if topics else ""
        yield ("  ".join(cells) + to).rstrip()


def _padded(cells: Sequence[str]) -> list[str]:
    width = max(map(len, cells), default=0)
    return [f"{cell:<{width}}" for cell in cells]


class _Rails:
    """The rails in front of each line, from the first to the last.

    Args:
        reads: stream or box → its inputs, in topological order.
        signs: the characters.
    """

    def __init__(self, reads: Mapping[str, Sequence[str]], signs: Signs) -> None:
        self._reads = {name: set(sources) for name, sources in reads.items()}
        self._signs = signs
        self._readers = Counter(source for sources in self._reads.values() for source in sources)
        self._columns: list[str | None] = []
        """The stream in each column; None: empty."""
        self._last = -1
        """Column of the mark above: a mark right below it would appear to read it."""

    def rows(self) -> list[str]:
        """One text for each stream and box."""
        return [self._row(name) for name in self._reads]

    def _row(self, name: str) -> str:
        self._readers.subtract(self._reads[name])
        sources = sorted(self._columns.index(source) for source in self._reads[name])
        above = list(self._columns)
        for column in sources:
            if not self._readers[self._columns[column] or ""]:
                self._columns[column] = None
        mark = self._mark(sources)
        self._columns.extend([None] * (mark + 1 - len(self._columns)))
        cells = "".join(
            self._cell(column, sources, mark, above) + self._between(column, sources, mark)
            for column in range(len(self._columns))
        )
        self._columns[mark] = name if self._readers[name] else None
        self._last = mark
        return cells.rstrip()

    def _mark(self, sources: Sequence[int]) -> int:
        """The column of a line's own mark."""
        if sources and self._columns[sources[-1]] is None:
            return sources[-1]
        first = sources[-1] + 1 if sources else 0
        taken = {c for c, name in enumerate(self._columns) if name is not None} | {self._last}
        return next(c for c in range(first, len(self._columns) + 2) if c not in taken)

    def _cell(
        self, column: int, sources: Sequence[int], mark: int, above: Sequence[str | None]
    ) -> str:
        signs = self._signs
        if column == mark:
            return signs.box if sources else signs.stream
        if column in sources:
            goes_on = self._columns[column] is not None
            if column == sources[0]:
                return signs.branch if goes_on else signs.turn
            return signs.cross if goes_on else signs.meet
        if column < len(above) and above[column] is not None:
            return signs.down
        return self._between(column, sources, mark)

    def _between(self, column: int, sources: Sequence[int], mark: int) -> str:
        return self._signs.across if sources and sources[0] <= column < mark else " "
