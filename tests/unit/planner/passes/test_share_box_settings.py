from collections.abc import Callable
from pathlib import Path

import pytest

import pipeline
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.planner.digest import answer_digest, fragment_digest, plan_digest, state_digest
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER

SIGHTING = Path(pipeline.__file__).parent / "projects" / "tolls" / "schemas" / "sighting.avsc"
STREAMS = "streams: {s: {topic: t, schema: sighting.avsc, event_time: seen_at}}\n"
GIB = 1 << 30
Planned = Callable[..., Plan]


def planned(boxes: str, head: str = "", streams: str = STREAMS) -> Plan:
    """The plan of a document with these boxes; `head`: further keys at its top."""
    text = f"network: n\nwindow: 1m\n{head}\n{streams}boxes:\n{boxes}"
    schema = SIGHTING.read_text(encoding="utf-8")
    references = schema_references(text, "network.yaml")
    schemas = {reference: SchemaText(schema, "sighting.avsc") for reference in references}
    return plan(load(text, "network.yaml", schemas), OWNER)


def both(of: Plan) -> dict[str, tuple[int, int | None]]:
    """Pace and limit of each fragment."""
    return {str(f.name): (f.pace_ms, f.state_limit_bytes) for f in of.fragments}


def fragment(of: Plan, name: str) -> Fragment:
    """A fragment by its name."""
    return next(f for f in of.fragments if f.name == name)


CHAIN = """
  moving: {filter: s, where: speed > 0%s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}%s}
  many: {filter: counts, where: n > 5%s}
"""


@pytest.mark.parametrize(
    ("head", "paces", "pace_ms"),
    [
        ("", ("", "", ""), 0),
        ("pace: 500ms", ("", "", ""), 500),
        ("", ("", ", pace: 2s", ""), 2_000),
        ("", (", pace: 3s", ", pace: 2s", ", pace: 1s"), 3_000),
        ("pace: 500ms", ("", ", pace: 100ms", ""), 500),
        ("pace: 500ms", (", pace: 0s", ", pace: 100ms", ", pace: 1ms"), 100),
        ("pace: 500ms", (", pace: 0s", ", pace: 0s", ", pace: 0s"), 0),
    ],
)
def test_a_fragment_has_the_largest_pace_of_its_boxes(
    head: str, paces: tuple[str, str, str], pace_ms: int
) -> None:
    """A box without one has the network's; a filter that moved counts as well."""
    assert both(planned(CHAIN % paces, head)) == {"many": (pace_ms, None)}


def test_each_fragment_has_its_own() -> None:
    """A box that is copied counts in both; a fragment without state has no limit."""
    boxes = """
  moving: {filter: s, where: speed > 0, pace: 1s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}, state_limit: 1GiB}
  cars: {map: moving, select: [car], pace: 2s}
  once: {deduplicate: s, by: [car], within: 1s}
"""
    assert both(planned(boxes, "pace: 500ms\nstate_limit: 4GiB")) == {
        "counts": (1_000, GIB),
        "cars": (2_000, None),
        "once": (500, 4 * GIB),
    }


def test_the_pace_of_a_route_is_that_of_its_branches() -> None:
    """A branch is no box without a pace."""
    boxes = "  r: {route: s, to: {x: speed > 0}, otherwise: y, pace: 100ms}\n"
    assert both(planned(boxes, "pace: 1s")) == {"x": (100, None), "y": (100, None)}


def test_a_box_without_an_expression_counts() -> None:
    """By its name."""
    boxes = """
  fast: {filter: s, where: speed > 9}
  every: {union: [s, fast], pace: 1s}
  once: {deduplicate: every, by: [car], within: 1s, state_limit: 2GiB, pace: 100ms}
"""
    assert both(planned(boxes)) == {"once": (1_000, 2 * GIB)}


MERGED = """
  left_n: {aggregate: s, by: [road], compute: {n: count(*)}%s}
  right_n: {aggregate: s, by: [road], compute: {m: count(*)}%s}
  both: {join: {left: left_n, right: right_n, on: [road, window_end]}, select: [road, n]%s}
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("", "", ""), (500, 4 * GIB)),
        ((", state_limit: 8GiB", "", ""), (500, 8 * GIB)),
        (("", ", state_limit: 8GiB, pace: 2s", ", state_limit: 6GiB"), (2_000, 6 * GIB)),
        ((", pace: 0s", ", pace: 10ms", ", pace: 20ms"), (20, 4 * GIB)),
    ],
)
def test_merged_boxes_have_the_largest_pace_and_the_least_limit(
    options: tuple[str, str, str], expected: tuple[int, int]
) -> None:
    """The aggregate that the planner adds declares nothing."""
    made = planned(MERGED % options, "pace: 500ms\nstate_limit: 4GiB")
    assert [str(box.name) for box in made.fragments[0].boxes][-2:] == ["both_windows", "both"]
    assert both(made) == {"both": expected}


MOVED = """
  pairs: {join: {left: s, right: s, on: [car], within: 1s}, select: {car: left.car}%s}
  some: {filter: pairs, where: car <> 'a'%s}
  best: {top: s, by: [car], rows: 1, highest: speed, select: [speed]%s}
  these: {filter: best, where: car <> 'a'%s}
"""


def test_boxes_that_gave_their_names_away_count() -> None:
    """A box below which a filter moved has the filter's name."""
    options = (", state_limit: 1GiB, pace: 2s", "", ", state_limit: 2GiB", ", pace: 1s")
    made = planned(MOVED % options)
    assert not {"pairs", "best"} & {box.name for f in made.fragments for box in f.boxes}
    assert both(made) == {"some": (2_000, GIB), "these": (1_000, 2 * GIB)}


@pytest.mark.parametrize("option", ["pace: 1s", "state_limit: 1GiB"])
def test_a_change_is_another_plan_and_the_same_state(option: str) -> None:
    """So a deploy starts the fragment again, and its state is kept."""
    boxes = "  pairs: {as_of: {left: s, right: s, on: [car], within: 1s}, select: [left.car]%s}\n"
    plain, set_to, other = (
        planned(boxes % given) for given in ("", f", {option}", f", {option.replace('1', '2')}")
    )
    for digest in (lambda p: fragment_digest(p.fragments[0]), plan_digest):
        assert len({digest(one) for one in (plain, set_to, other)}) == 3
    assert len({state_digest(one.fragments[0]) for one in (plain, set_to, other)}) == 1
    assert len({answer_digest(one.fragments[0], {}) for one in (plain, set_to, other)}) == 1


@pytest.mark.parametrize("given", [", pace: 0s", ""])
def test_the_default_is_the_plan_without_it(given: str) -> None:
    """No fragment is restarted because this version knows the keys."""
    plain, written = planned(CHAIN % ("", "", "")), planned(CHAIN % ("", given, ""))
    assert plan_digest(plain) == plan_digest(written)
    assert fragment(plain, "many") == fragment(written, "many")
