"""Dead-letter limits in a document."""

from collections.abc import Callable

from pipeline.network.model import Limit, Network

HEAD = """network: n
streams:
  s:
    topic: t
    schema: sighting.avsc
    event_time: seen_at
"""
Loads = Callable[..., Network]
Problems = Callable[..., list[str]]


def test_limits_of_streams_and_boxes(load_text: Loads) -> None:
    """`within` may be omitted; without `dead_letters` there is no limit."""
    found = load_text(
        HEAD
        + """    dead_letters: {stop_above: 0}
boxes:
  b: {filter: s, where: speed > 0, dead_letters: {stop_above: 100, within: 1m}}
  c: {filter: b, where: speed > 1}
"""
    )
    assert found.limits == (Limit("s", 0), Limit("b", 100, 60_000))


def test_a_wrong_limit_is_reported_at_its_line(problems_of: Problems) -> None:
    """Missing, out of range, no duration, unknown."""
    boxes = (
        "boxes:\n"
        "  a: {filter: s, where: speed > 0, dead_letters: {within: 1m}}\n"
        "  b: {filter: s, where: speed > 0, dead_letters: {stop_above: -1}}\n"
        "  c: {filter: s, where: speed > 0, dead_letters: {stop_above: 1, within: 0s}}\n"
        "  d: {filter: s, where: speed > 0, dead_letters: {stop_above: 1, at: 2}}\n"
        "  e: {filter: s, where: speed > 0, dead_letters: stop}\n"
    )
    a, b, c, d, e = problems_of(HEAD + boxes)
    assert a == "network.yaml:8, box a: dead_letters of box a needs stop_above"
    assert "stop_above of dead_letters of box b must be a whole number from 0" in b
    assert "within of dead_letters of box c must be at least 1ms" in c
    assert "dead_letters of box d has no key at" in d
    assert "dead_letters of box e must be a mapping" in e
