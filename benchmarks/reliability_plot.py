"""Draw recovery time against its cost: one point for each row of `benchmarks.reliability`.

    python -m benchmarks.reliability --query windows --all --repeat 20 --output rows.json
    python -m benchmarks.reliability_plot rows.json > reliability.svg
    python -m benchmarks.reliability_plot rows.json --by batches > reliability.svg

Each point is the median; a line leads from it to the worst. The cost is the processor time of both
nodes, or instances. The time is on a logarithmic scale: a second, and the session of a peer.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.costs import Row, rows_of
from benchmarks.harness import median

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 60, 180, 40, 50
SECONDS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
"""Ticks of the time."""
STEP: Final = 0.5
"""Between two ticks of the cost, in cores."""
TIMES: Final = {
    "pauses": "longest time without a result, less the usual one (s)",
    "batches": "from the kill to the first new batch (s)",
}
"""What is drawn, by the field of a row."""


@dataclass(frozen=True, slots=True)
class Point:
    """A mode: processor time in cores, and the median and the worst time in seconds."""

    mode: str
    cores: float
    median_s: float
    worst_s: float


@dataclass(frozen=True, slots=True)
class Scale:
    """From costs and times to places in the picture.

    Args:
        cores: the largest cost.
        shortest_s: the lower end of the time.
        longest_s: the upper end of the time.
    """

    cores: float
    shortest_s: float
    longest_s: float

    def x(self, cores: float) -> float:
        """The place of a cost."""
        return LEFT + cores / self.cores * (WIDTH - LEFT - RIGHT)

    def y(self, seconds: float) -> float:
        """The place of a time; what is beyond the scale is at its end."""
        low, high = math.log(self.shortest_s), math.log(self.longest_s)
        inside = min(max(seconds, self.shortest_s), self.longest_s)
        share = (math.log(inside) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def main(arguments: Sequence[str]) -> int:
    """Print the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability_plot",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", type=Path, help="the file of `benchmarks.reliability --output`")
    parser.add_argument("--by", choices=tuple(TIMES), default="pauses", help="(%(default)s)")
    options = parser.parse_args(arguments)
    points = points_of(rows_of(options.rows.read_text("utf-8")), options.by)
    if not points:
        parser.error(f"no row has {options.by}")
    sys.stdout.write(picture(points, TIMES[options.by]))
    return 0


def points_of(rows: Sequence[Row], by: str) -> tuple[Point, ...]:
    """The rows that have measured a time, a key of `TIMES`."""
    times = [(one, one.pauses if by == "pauses" else one.batches) for one in rows]
    return tuple(
        Point(one.mode, one.cost.nodes, median(found), max(found)) for one, found in times if found
    )


def picture(points: Sequence[Point], what: str) -> str:
    """The picture as SVG.

    Args:
        points: at least one.
        what: the time.
    """
    cores = STEP * math.ceil(max(one.cores for one in points) / STEP)
    shortest = max((s for s in SECONDS if s < min(p.median_s for p in points)), default=SECONDS[0])
    longest = min((s for s in SECONDS if s > max(p.worst_s for p in points)), default=SECONDS[-1])
    scale = Scale(cores, shortest, longest)
    parts = [*_axes(scale, what), *(part for one in points for part in _point(scale, one))]
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def _point(scale: Scale, one: Point) -> list[str]:
    x, y, worst = scale.x(one.cores), scale.y(one.median_s), scale.y(one.worst_s)
    return [
        f'<path d="M{x:.1f} {y:.1f}V{worst:.1f}" stroke="#d9822b" stroke-width="2"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1f5fa8"/>',
        f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{one.mode}</text>',
    ]


def _axes(scale: Scale, what: str) -> list[str]:
    bottom = HEIGHT - BOTTOM
    middle = (LEFT + WIDTH - RIGHT) // 2
    below = "processor time of both nodes without a fault (cores)"
    parts = [
        f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#444444"/>',
        f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{below}</text>',
        f'<text x="12" y="{TOP - 14}">{what}; the line leads to the worst</text>',
    ]
    for step in range(round(scale.cores / STEP) + 1):
        x = scale.x(step * STEP)
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{step * STEP:g}</text>'
        )
    for seconds in SECONDS:
        if scale.shortest_s <= seconds <= scale.longest_s:
            y = scale.y(seconds) + 4
            parts.append(f'<text x="{LEFT - 8}" y="{y:.1f}" text-anchor="end">{seconds:g}</text>')
    return parts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
