"""Line plot as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 60, 150, 40, 50
TICKS: Final = 5
COLOURS: Final = (
    "#1f5fa8", "#d9822b", "#3a8a4d", "#a83232", "#6b4c9a", "#7f7f7f", "#117a8b", "#b58900",
    "#333333",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plot: its name, and its points."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at a place along the axis, with a short text."""

    at: float
    text: str


def picture(title: str, below: str, lines: Sequence[Line], marks: Sequence[Mark] = ()) -> str:
    """A plot as SVG.

    Args:
        title: what the heights are.
        below: what the places along the axis are.
        lines: at least one point in all of them.
        marks: events along the axis.
    """
    most_x = max(1e-9, *(x for line in lines for x, _ in line.points))
    most_y = max(1e-9, *(y for line in lines for _, y in line.points))
    parts = [
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#444444"/>',
        f'<text x="12" y="{TOP - 14}">{title}</text>',
    ]
    middle = (LEFT + WIDTH - RIGHT) // 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{below}</text>')
    for mark in marks:
        x, _ = _place(mark.at, 0, most_x, most_y)
        parts.append(
            f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#999999" stroke-dasharray="3"/>'
            f'<text x="{x:.1f}" y="{TOP - 2}" text-anchor="middle">{mark.text}</text>'
        )
    for tick in range(TICKS + 1):
        x, y = _place(most_x * tick / TICKS, most_y * tick / TICKS, most_x, most_y)
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
            f"{most_x * tick / TICKS:.3g}</text>"
        )
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{most_y * tick / TICKS:.3g}</text>"
        )
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        places = [_place(x, y, most_x, most_y) for x, y in line.points]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 18 * number}" fill="{colour}">'
            f"{line.name}</text>"
        )
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def _place(x: float, y: float, most_x: float, most_y: float) -> tuple[float, float]:
    across = LEFT + x / most_x * (WIDTH - LEFT - RIGHT)
    return across, HEIGHT - BOTTOM - y / most_y * (HEIGHT - TOP - BOTTOM)
