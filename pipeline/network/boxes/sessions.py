"""Session windows: records of one group that follow each other within a gap."""

from dataclasses import dataclass

from pipeline import durations
from pipeline.network.boxes.common import Defaults, window_size
from pipeline.network.fields import Fields
from pipeline.yaml_reader import YamlMap

LONGEST_MS = 24 * 3_600_000
"""Default of the longest session: sessions are cut at midnight, UTC."""


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """One session for all records of a group of which each is at most a gap from the next.

    It is `[first record, last record + gap]`. Records on both sides of a multiple of `longest_ms`
    since 1970 never share a session, so that every session ends and its state is bounded.
    """

    gap_ms: int
    longest_ms: int


def read_session(fields: Fields, defaults: Defaults) -> SessionWindow | None:
    """`session` of a box: a duration, or a mapping. None: missing or invalid (reported)."""
    node = fields.node("session")
    if node is None:
        return None
    longest: int | None = LONGEST_MS
    if isinstance(node, YamlMap):
        inner = Fields(node, f"session of {fields.what}", fields.report, fields.box)
        gap = window_size(inner, "gap", inner.text("gap", required=True), defaults)
        written = inner.text("longest")
        if inner.has("longest"):
            longest = window_size(inner, "longest", written, defaults)
        inner.finish()
    else:
        text = fields.as_text(node, f"session of {fields.what}")
        gap = window_size(fields, "session", text, defaults)
    if gap is None or longest is None:
        return None
    if gap >= longest:
        fields.problem(
            f"the gap of a session, {durations.format(gap)}, is not shorter than the longest one, "
            f"{durations.format(longest)}",
            node.line,
            hint="write session: {gap: 2d, longest: 30d} with a longest that fits",
        )
        return None
    return SessionWindow(gap, longest)
