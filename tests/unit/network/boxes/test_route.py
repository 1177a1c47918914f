from collections.abc import Callable

import pytest

from pipeline.network.boxes.route import BRANCH, Branch, Route
from pipeline.network.model import Box, Network, Origin
from tests.unit.network.described import HEAD, SCHEMAS, ErrorsOf, column_texts

ROUTE = '  r: {route: s, to: {fast: speed > 100, slow: "100 / segment > 3"}, otherwise: rest}\n'

Loaded = Callable[..., Network]


def boxes_of(lines: str, load_text: Loaded) -> dict[str, Box]:
    """All boxes by name."""
    return {str(box.name): box for box in load_text(HEAD + lines, SCHEMAS).boxes}


def test_a_route_and_its_branches(load_text: Loaded) -> None:
    """The streams have the columns, the event time and the place of their input."""
    found = boxes_of(ROUTE + "  again: {filter: rest, where: speed > 1}\n", load_text)
    assert list(found) == ["r", "fast", "slow", "rest", "again"]
    route = found["r"]
    assert isinstance(route, Route)
    assert [choice.where.origin for choice in route.to] == [
        Origin("r", "to.fast"),
        Origin("r", "to.slow"),
    ]
    assert route.columns[-1].name == BRANCH
    for name in ("fast", "slow", "rest"):
        branch = found[name]
        assert isinstance(branch, Branch)
        assert branch.inputs == ("r",)
        assert branch.columns == route.columns[:-1]
        assert branch.event_time_column == "seen_at"
    assert column_texts(found["again"]) == column_texts(found["rest"])


def test_rows_of_no_branch_may_be_dropped(load_text: Loaded) -> None:
    """Without `otherwise` there is no stream for them; a key counts for all streams."""
    found = boxes_of("  r: {route: s, to: {fast: speed > 100}, key: [car]}\n", load_text)
    route = found["r"]
    assert isinstance(route, Route)
    assert list(found) == ["r", "fast"]
    assert (route.otherwise, route.key) == (None, ("car",))


def test_the_branches_can_be_outputs(load_text: Loaded) -> None:
    """Like the streams of other boxes."""
    loaded = load_text(HEAD + ROUTE + "outputs: {slow: {topic: t}}\n", SCHEMAS)
    assert [output.stream for output in loaded.outputs] == ["slow"]


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ("  r: {route: s}\n", ["box r needs to"]),
        ("  r: {route: s, to: {}}\n", ["to of box r names no stream"]),
        ("  r: {route: s, to: [a]}\n", ["to of box r must be a mapping"]),
        (
            "  r: {route: s, to: {a: [speed]}}\n",
            ["to.a of box r must be one value, not a list"],
        ),
        (
            "  r: {route: s, to: {a: speed, b: spede > 1}}\n",
            [
                "needs a condition, but this is DOUBLE",
                (
                    "there is no column spede "
                    "(there is: speed, car, kind, road, segment, location, seen_at)"
                ),
            ],
        ),
        (
            "  r: {route: s, to: {a: speed > 1}, otherwise: a}\n",
            [
                (
                    "otherwise of box r is a, which to has already\n"
                    "    hint: leave otherwise out, and what no condition takes is dropped"
                )
            ],
        ),
        (
            "  r: {route: s, to: {s: speed > 1, r: speed > 2, A: speed > 3}}\n",
            [
                "box r makes a stream s, and there is another one",
                "box r makes a stream r, and there is another one",
                (
                    "'A' is no name for a stream\n"
                    "    hint: small letters, digits and _, beginning with a letter, at most 63"
                ),
            ],
        ),
        (
            (
                "  r: {route: s, to: {a: speed > 1}}\n"
                "  q: {route: s, to: {a: speed > 1, x: speed > 2}}\n"
                "  b: {filter: a, where: speed > 1}\n"
                "  c: {union: [b, x]}\n"
            ),
            ["box q makes a stream a, and there is another one"],
        ),
        (
            "  r: {route: s, to: {a: speed > 1}}\n  b: {filter: r, where: speed > 1}\n",
            ["r is no stream but makes several (there is: a)"],
        ),
        (
            "  r: {route: s, to: {a: speed > 1}}\noutputs: {r: {topic: t}}\n",
            ["r is no stream but makes several (there is: a)"],
        ),
        (
            "  r: {route: a, to: {a: speed > 1}}\n",
            ["a loop: r → a → r"],
        ),
    ],
)
def test_errors_in_a_route(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """One message for each, with the remedy."""
    assert errors_of(lines) == problems
