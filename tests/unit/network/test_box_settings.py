"""`pace` and `state_limit` in a document."""

from collections.abc import Callable

import pytest

from pipeline.errors import DocumentError
from pipeline.network.model import BoxSettings, Network

STREAMS = "streams: {s: {topic: t, schema: sighting.avsc, event_time: seen_at}}\n"
HEAD = f"network: n\n{STREAMS}boxes:\n"
STATELESS = ("{filter: s, where: speed > 0%s}", "{route: s, to: {x: speed > 0}%s}")
STATEFUL = (
    "{aggregate: s, window: 1m, compute: {n: count(*)}%s}",
    "{top: s, window: 1m, rows: 1, highest: speed%s}",
    "{join: {left: s, right: s, on: [car], within: 1s}, select: [left.car]%s}",
    "{as_of: {left: s, right: s, on: [car], within: 1s}, select: [left.car]%s}",
    "{deduplicate: s, by: [car], within: 1s%s}",
)
Loads = Callable[..., Network]
Problems = Callable[..., list[str]]


def test_the_network_and_boxes_declare_both(load_text: Loads) -> None:
    """What a box omits stays open; a branch of a route is no box of the document."""
    found = load_text(
        "network: n\npace: 500ms\nstate_limit: 4GiB\n"
        + STREAMS
        + "boxes:\n"
        + "  a: {filter: s, where: speed > 0, pace: 2s}\n"
        + "  b: {deduplicate: a, by: [car], within: 1s, state_limit: 16MiB, pace: 0ms}\n"
        + "  c: {route: s, to: {x: speed > 0}}\n"
    )
    assert (found.pace_ms, found.state_limit_bytes) == (500, 4 << 30)
    assert found.box_settings == (
        BoxSettings(of=found.boxes[0].name, pace_ms=2_000),
        BoxSettings(of=found.boxes[1].name, pace_ms=0, state_limit_bytes=16 << 20),
        BoxSettings(of=found.boxes[2].name),
    )


def test_without_them_there_is_no_pace_and_no_limit(load_text: Loads) -> None:
    """The defaults."""
    found = load_text(HEAD + "  a: {filter: s, where: speed > 0}\n")
    assert (found.pace_ms, found.state_limit_bytes) == (0, None)


@pytest.mark.parametrize(("pace", "ms"), [("0ms", 0), ("0s", 0), ("1ms", 1), ("1m", 60_000)])
def test_a_pace_within_the_range(pace: str, ms: int, load_text: Loads) -> None:
    """Both bounds are included."""
    assert load_text(f"pace: {pace}\n{HEAD}  a: {STATELESS[0] % ''}\n").pace_ms == ms


@pytest.mark.parametrize(("limit", "size"), [("16777216B", 16 << 20), ("64TiB", 64 << 40)])
def test_a_limit_within_the_range(limit: str, size: int, load_text: Loads) -> None:
    """Both bounds are included."""
    found = load_text(f"state_limit: {limit}\n{HEAD}  a: {STATELESS[0] % ''}\n")
    assert found.state_limit_bytes == size


@pytest.mark.parametrize("pace", ["60001ms", "2m", "5", "fast", "-1s", "1.5s", "99999999d"])
def test_a_wrong_pace_is_reported_with_the_range(pace: str, problems_of: Problems) -> None:
    """With its line; of the network and of a box."""
    text = f"{HEAD}  a: {{filter: s, where: speed > 0, pace: {pace}}}\npace: {pace}\n"
    of_network, of_box = sorted(problems_of(text), reverse=True)
    assert of_network.startswith(
        f"network.yaml:5: pace of the document must be a duration from 0s to 1m, not '{pace}'"
    )
    assert of_box.startswith(
        f"network.yaml:4, box a: pace of box a must be a duration from 0s to 1m, not '{pace}'"
    )


@pytest.mark.parametrize("limit", ["16777215B", "15MiB", "65TiB", "4GB", "4", "none", "-1GiB"])
def test_a_wrong_limit_is_reported_with_the_range(limit: str, problems_of: Problems) -> None:
    """With its line; of the network and of a box."""
    extra = f", state_limit: {limit}"
    text = f"{HEAD}  a: {STATEFUL[0] % extra}\nstate_limit: {limit}\n"
    of_network, of_box = sorted(problems_of(text), reverse=True)
    message = f"must be a size from 16MiB to 64TiB, not '{limit}'"
    assert of_network.startswith(f"network.yaml:5: state_limit of the document {message}")
    assert of_box.startswith(f"network.yaml:4, box a: state_limit of box a {message}")


def test_the_hint_names_the_units(load_text: Loads) -> None:
    """Only if the value has none of them."""
    extra = ", pace: fast, state_limit: 4GB"
    with pytest.raises(DocumentError) as caught:
        load_text(f"pace: 2m\n{HEAD}  a: {STATEFUL[0] % extra}\n")
    assert {problem.hint for problem in caught.value.problems} == {
        "",
        "write a whole number and ms, s, m, h or d",
        "write a whole number and B, KiB, MiB, GiB or TiB",
    }


@pytest.mark.parametrize("box", STATELESS)
def test_a_limit_of_a_box_without_state_is_reported(box: str, load_text: Loads) -> None:
    """With the kinds that have state."""
    with pytest.raises(DocumentError) as caught:
        load_text(f"{HEAD}  a: {box % ', state_limit: 4GiB'}\n")
    (problem,) = caught.value.problems
    kind = box[1 : box.index(":")]
    assert (problem.line, problem.box) == (4, "a")
    assert problem.message == f"state_limit of box a: a {kind} has no state"
    assert problem.hint.endswith("aggregate, join, as_of, top, deduplicate")


@pytest.mark.parametrize("box", STATEFUL)
def test_every_kind_with_state_may_have_a_limit(box: str, load_text: Loads) -> None:
    """Also those whose state are rows."""
    found = load_text(f"{HEAD}  a: {box % ', state_limit: 1GiB'}\n")
    assert [settings.state_limit_bytes for settings in found.box_settings] == [1 << 30]


def test_a_misspelt_key_is_reported_with_similar_ones(load_text: Loads) -> None:
    """A box without state is not advised to have a limit."""
    boxes = f"  a: {STATEFUL[0] % ', state_limt: 1GiB, pce: 1s'}\n  b: {STATELESS[0]}\n"
    with pytest.raises(DocumentError) as caught:
        load_text(f"state_limits: 1GiB\n{HEAD}{boxes % ', state_limt: 1GiB'}")
    found = {(p.message, p.choices[0]) for p in caught.value.problems}
    assert ("the document has no key state_limits", "state_limit") in found
    assert ("box a has no key state_limt", "state_limit") in found
    assert ("box a has no key pce", "pace") in found
    (of_b,) = (p for p in caught.value.problems if p.box == "b")
    assert "pace" in of_b.choices
    assert "state_limit" not in of_b.choices
