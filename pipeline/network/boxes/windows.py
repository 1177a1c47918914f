"""Windows of event time, and their YAML."""

from dataclasses import dataclass

from pipeline.network.boxes.common import Defaults, window_size
from pipeline.network.fields import Fields
from pipeline.network.types import Column, Columns, Scalar
from pipeline.yaml_reader import YamlMap

WINDOW_START = "window_start"
WINDOW_END = "window_end"

WINDOW_COLUMNS: Columns = tuple(
    Column(name, Scalar.TIMESTAMP, nullable=False, millis=True)
    for name in (WINDOW_START, WINDOW_END)
)


@dataclass(frozen=True, slots=True)
class TumblingWindow:
    """Windows of one size, end to end; `[start, end)` with start = offset modulo size, in UTC."""

    size_ms: int
    offset_ms: int

    @property
    def slide_ms(self) -> int:
        """Distance between the starts of neighbouring windows: their size."""
        return self.size_ms


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Windows of one size that overlap: one begins every `slide_ms`, which is less than the size.

    `[start, end)` with start = offset modulo slide, in UTC. A record counts in every window that
    contains it.
    """

    size_ms: int
    offset_ms: int
    slide_ms: int


Window = TumblingWindow | SlidingWindow

OVERLAPPING_MAX = 1_000
"""Limit of windows per record: each is a row of its own in the state."""


def read_window(fields: Fields, defaults: Defaults) -> Window | None:
    """`window` of a box: a duration, a mapping, or nothing if the document declares one.

    None: missing or invalid (reported).
    """
    node = fields.node("window")
    if node is None:
        if fields.has("window"):
            return None
        if defaults.window_ms is None:
            fields.problem(
                f"{fields.what} needs window",
                fields.line,
                hint="write window: 1m here, or once at the top of the document",
            )
            return None
        return TumblingWindow(defaults.window_ms, 0)
    if not isinstance(node, YamlMap):
        text = fields.as_text(node, f"window of {fields.what}")
        size = window_size(fields, "window", text, defaults)
        return None if size is None else TumblingWindow(size, 0)
    inner = Fields(node, f"window of {fields.what}", fields.report, fields.box)
    size = window_size(inner, "size", inner.text("size", required=True), defaults)
    written = inner.text("slide")
    slide = window_size(inner, "slide", written, defaults) if inner.has("slide") else size
    offset = inner.duration("offset", 0)
    inner.finish()
    return None if size is None or slide is None else _window(fields, inner, size, slide, offset)


def _window(fields: Fields, at: Fields, size: int, slide: int, offset: int) -> Window | None:
    """Windows of these parameters; None: invalid (reported)."""
    wrong, hint = "", ""
    if slide > size:
        wrong = "the slide of a window is longer than the window, so records would be in none"
        hint = "to count every record once leave slide out"
    elif -(-size // slide) > OVERLAPPING_MAX:
        wrong = f"every record would count in {-(-size // slide):,} windows"
        hint = f"{OVERLAPPING_MAX:,} is the most: slide further, or make the window shorter"
    elif offset >= slide:
        what = "the window" if slide == size else "its slide"
        wrong = f"the offset of a window must be shorter than {what}"
    if wrong:
        fields.problem(wrong, at.line, hint=hint)
        return None
    return TumblingWindow(size, offset) if slide == size else SlidingWindow(size, offset, slide)
