"""Draw what a reader saw while an input was cut: stable, tentative and corrected results over time.

    medusa example run tolls --cut partition --for 20s -o json > run.json
    python -m benchmarks.cut_plot run.json > tolls.svg

The lines are sums since the beginning. A tentative result that is confirmed, replaced or undone
counts as settled.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 340, 60, 20, 40, 50
TICKS: Final = 5
SETTLED: Final = ("confirmed", "replaced", "undone")
LINES: Final = (
    ("stable", "#1f5fa8", ("stable", "confirmed", "replaced")),
    ("tentative", "#d9822b", ("tentative",)),
    ("settled", "#3a8a4d", SETTLED),
)
"""Name, colour, and the outcomes that it adds up."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that the reader saw: when, in ms since the cut began, and what."""

    at_ms: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Scale:
    """From times and numbers to places in the picture."""

    first_ms: int
    last_ms: int
    most: int

    def x(self, at_ms: float) -> float:
        """The place of a time."""
        share = (at_ms - self.first_ms) / max(1, self.last_ms - self.first_ms)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, number: float) -> float:
        """The place of a number."""
        return HEIGHT - BOTTOM - number / max(1, self.most) * (HEIGHT - TOP - BOTTOM)


def main(arguments: Sequence[str]) -> int:
    """Print the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cut_plot",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="output of `medusa example run --cut … -o json`")
    cut = json.loads(parser.parse_args(arguments).run.read_text("utf-8"))["cut"]
    seen = tuple(Seen(int(at_ms), str(outcome)) for at_ms, outcome in cut["seen"])
    sys.stdout.write(picture(seen, int(cut["cut_ms"]), str(cut["name"])))
    return 0


def picture(seen: Sequence[Seen], cut_ms: int, name: str) -> str:
    """The picture as SVG.

    Args:
        seen: in the order of time.
        cut_ms: how long the input was cut.
        name: of the results.
    """
    first_ms = min([0, *(one.at_ms for one in seen)])
    last_ms = max([cut_ms, *(one.at_ms for one in seen)])
    sums = {line: summed(seen, outcomes) for line, _, outcomes in LINES}
    most = max(number for steps in sums.values() for _, number in steps)
    scale = Scale(first_ms, last_ms, most)
    parts = [_band(scale, cut_ms), *_axes(scale, name)]
    for place, (line, colour, _) in enumerate(LINES):
        parts += [_line(scale, sums[line], colour), _legend(place, line, colour)]
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def summed(seen: Sequence[Seen], outcomes: Sequence[str]) -> list[tuple[int, int]]:
    """How many of these outcomes there were at each time; it begins with none."""
    steps, number = [(seen[0].at_ms if seen else 0, 0)], 0
    for one in seen:
        if one.outcome in outcomes:
            number += 1
            steps.append((one.at_ms, number))
    return steps


def _line(scale: Scale, steps: Sequence[tuple[int, int]], colour: str) -> str:
    points, before = [], 0
    for at_ms, number in [*steps, (scale.last_ms, steps[-1][1])]:
        points += [(scale.x(at_ms), scale.y(before)), (scale.x(at_ms), scale.y(number))]
        before = number
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _band(scale: Scale, cut_ms: int) -> str:
    x, width = scale.x(0), scale.x(cut_ms) - scale.x(0)
    place = f'x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
    return f'<rect {place} fill="#dddddd"/>'


def _axes(scale: Scale, name: str) -> list[str]:
    bottom, below = HEIGHT - BOTTOM, "seconds since a partition was cut (grey: while it was)"
    parts = [
        f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#444444"/>',
        f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{below}</text>',
        f'<text x="12" y="{TOP - 14}">{name} that a reader has seen</text>',
    ]
    for step in range(TICKS + 1):
        at_ms = scale.first_ms + (scale.last_ms - scale.first_ms) * step / TICKS
        number = scale.most * step / TICKS
        x, y = scale.x(at_ms), scale.y(number)
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{at_ms / 1000:.0f}</text>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number:.0f}</text>')
    return parts


def _legend(place: int, name: str, colour: str) -> str:
    x = WIDTH - RIGHT - 90 * (len(LINES) - place)
    line = f'<path d="M{x} {TOP - 18}h18" stroke="{colour}" stroke-width="2"/>'
    return f'{line}<text x="{x + 22}" y="{TOP - 14}">{name}</text>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
