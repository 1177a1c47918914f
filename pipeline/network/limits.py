"""`dead_letters` of a stream or a box: the accepted number before the fragment stops."""

from pipeline.network.fields import Fields
from pipeline.network.model import Limit

MOST_MAX = 1_000_000_000


def read_limit(name: str, fields: Fields) -> Limit | None:
    """Read `dead_letters: {stop_above: N, within: DURATION}` of a stream or a box.

    None: missing, or invalid (reported).
    """
    node = fields.mapping("dead_letters")
    if node is None:
        return None
    inner = Fields(node, f"dead_letters of {fields.what}", fields.report, fields.box)
    inner.line = fields.line_of("dead_letters")
    there = inner.required("stop_above")
    most = inner.integer("stop_above", 0, low=0, high=MOST_MAX)
    within_ms = inner.duration("within", 1, low=1)
    inner.finish()
    return Limit(name, most, within_ms if inner.has("within") else None) if there else None
