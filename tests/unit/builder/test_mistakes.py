import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.builder import External, Limit, NetworkBuilder, Window, boxes
from pipeline.errors import DocumentError, Problem
from tests.unit.builder.test_round_trip import SIGHTING

HERE = str(Path(__file__))


def line(offset: int = 0) -> int:
    """The line of the call, or one near it."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno + offset


def network() -> tuple[NetworkBuilder, External]:
    """A network that reads sightings."""
    made = NetworkBuilder("cars", window="1m")
    return made, made.stream("s", topic="cars-seen", schema="sighting.avsc", event_time="seen_at")


def problems(made: NetworkBuilder) -> list[Problem]:
    """The problems of a description."""
    with pytest.raises(DocumentError) as caught:
        made.build({"sighting.avsc": SIGHTING})
    return list(caught.value.problems)


def refused(call: Callable[[], Any]) -> Problem:
    """The error that ends a description."""
    with pytest.raises(DocumentError) as caught:
        call()
    (problem,) = caught.value.problems
    assert problem.file == HERE
    return problem


def test_an_error_in_an_expression_names_call_box_and_column() -> None:
    """As in YAML, with the existing columns."""
    made, s = network()
    boxes.map("fast", s, select={"v": "spede * 2"})
    (problem,) = problems(made)
    assert str(problem).startswith(
        f"{HERE}:{line(-3)}, box fast, column v: there is no column spede (there is: speed, car,"
    )


def test_all_errors_are_reported_in_one_pass_in_the_order_of_the_calls() -> None:
    """One for each call; a call of several lines is identified by its first one."""
    made, s = network()
    fast = boxes.filter("fast", s, where="speed >")
    boxes.aggregate(
        "counted",
        s,
        by=["raod"],
        compute={"n": "count(*)"},
    )
    made.output(fast, topic="a topic")
    at = line()
    found = [(p.line - at, p.box) for p in problems(made)]
    assert found == [(-8, "fast"), (-7, "counted"), (-1, "")]


def test_errors_in_several_files_name_each_file(tmp_path: Path) -> None:
    """A function of another module is reported by its definition, not by its call."""
    made, s = network()
    other = tmp_path / "other.py"
    other.write_text("\ndef fast(s):\n    return boxes.filter('fast', s, where='nothing')\n")
    found: dict[str, Any] = {"boxes": boxes, "__name__": "other"}
    exec(compile(other.read_text(), str(other), "exec"), found)  # noqa: S102 - the test's own
    boxes.filter("slow", found["fast"](s), where="nothing either")
    assert [(p.file, p.line) for p in problems(made)] == [(str(other), 3), (HERE, line(-1))]


def test_a_column_selected_twice_is_reported_without_a_line() -> None:
    """Both are in the same call."""
    made, s = network()
    boxes.map("twice", s, select=["car", "car"])
    assert [p.message for p in problems(made)] == ["select has car twice"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: boxes.filter("b", "s", where="true"),  # type: ignore[arg-type]
         "stream of box b must be a stream or a box, not a str"),
        (lambda s: boxes.union("b", s),
         "streams of box b must be a list of streams, not an External"),
        (lambda s: boxes.filter("b", s, where=2.5),  # type: ignore[arg-type]
         "where of box b cannot be a float"),
        (lambda s: boxes.filter(7, s, where="true"),  # type: ignore[arg-type]
         "the name of a box must be a text, not an int"),
        (lambda s: boxes.map("b", s, select={"a": None}),  # type: ignore[dict-item]
         "a of select of box b cannot be a NoneType"),
        (lambda s: boxes.map("b", s, select={"a", "b"}),  # type: ignore[arg-type]
         "select of box b cannot be a set"),
        (lambda s: boxes.map("b", s, select=b"car"),  # type: ignore[arg-type]
         "select of box b cannot be a bytes"),
        (lambda s: boxes.aggregate("b", s, compute={}, window=timedelta(microseconds=1)),
         "window of box b must be whole milliseconds, not datetime.timedelta(microseconds=1)"),
        (lambda s: boxes.aggregate("b", s, compute={}, window=Window(size=timedelta(-1))),
         "size of window of box b must not be negative"),
        (lambda s: boxes.map("b", s, select={None: "car"}),  # type: ignore[dict-item]
         "a name in select of box b must be a text, not a NoneType"),
        (lambda s: boxes.filter("b", s, where="car = '\ud800'"),
         "where of box b has half of a surrogate pair"),
        (lambda s: boxes.join("b", s, network()[1], on=["car"]),
         "box b reads streams of two networks, cars and cars"),
        (lambda _: NetworkBuilder("n", window=1.5),  # type: ignore[arg-type]
         "window of network n cannot be a float"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_written_ends_the_description(
    call: Callable[[External], Any], message: str
) -> None:
    """With the file and line of the call."""
    assert refused(lambda: call(network()[1])).message == message


def test_an_unknown_branch_of_a_route_is_reported_with_the_existing_ones() -> None:
    """With the line that uses it; and the route itself is no stream."""
    _, s = network()
    fast = boxes.route("fast", s, to={"faster": "speed > 9"}, otherwise="slower")
    problem = refused(lambda: fast["fastr"])
    assert problem.message == "route fast has no branch fastr"
    assert (problem.line, problem.choices) == (line(-2), ("faster", "slower"))
    problem = refused(lambda: boxes.filter("b", fast, where="true"))  # type: ignore[arg-type]
    assert problem.message == "stream of box b must be a stream or a box, not a Branches"
    assert problem.hint == "hand over one of its branches: fast['faster']"


def test_a_duplicate_name_is_reported_with_the_other_place() -> None:
    """For streams, boxes and outputs."""
    made, s = network()
    first = boxes.filter("b", s, where="true")
    problem = refused(lambda: boxes.map("b", s, select=["car"]))
    assert problem.message == f"box b is there already: {HERE}:{line(-2)}"
    assert problem.line == line(-2)
    made.output(first, topic="one")
    message = f"output b is there already: {HERE}:{line(-1)}"
    assert refused(lambda: made.output(first, topic="two")).message == message


def test_an_output_must_be_a_box_of_the_same_network() -> None:
    """Neither a name nor a box of another one."""
    made, s = network()
    other = boxes.filter("b", network()[1], where="true")
    assert "not b of network cars" in refused(lambda: made.output(other, topic="t")).message
    assert "not b" in refused(lambda: made.output("b", topic="t")).message  # type: ignore[arg-type]
    made.output(s, topic="t")  # type: ignore[arg-type]
    boxes.filter("b", s, where="true")
    (problem,) = problems(made)
    assert problem.message == "output s is a stream from outside: it has a topic already"


def test_a_text_in_place_of_a_list_is_reported_as_in_yaml() -> None:
    """A text is a sequence of characters, which is not intended."""
    made, s = network()
    boxes.map("b", s, select="car")
    assert problems(made)[0].message == "select of box b must be a list or a mapping of columns"


def test_a_time_without_a_zone_is_reported() -> None:
    """As in YAML."""
    made = NetworkBuilder("n")
    start = datetime(2024, 1, 31)  # noqa: DTZ001 - the mistake
    s = made.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at", start=start)
    boxes.filter("b", s, where="true", dead_letters=Limit(stop_above=-1))
    assert [p.line for p in problems(made)] == [line(-2), line(-1)]


def test_an_invalid_pace_or_limit_is_reported_at_its_call() -> None:
    """As in YAML; a kind without state has no parameter for a limit."""
    made = NetworkBuilder("n", pace=timedelta(minutes=2), state_limit="1B")
    s = made.stream("s", topic="t", schema="sighting.avsc", event_time="seen_at")
    boxes.filter("b", s, where="true", pace="fast")
    boxes.deduplicate("c", s, by=["car"], within="1s", state_limit="4GB")
    found = problems(made)
    assert [p.line for p in found] == [line(-5), line(-5), line(-3), line(-2)]
    assert [p.message.split(" must be ")[0] for p in found] == [
        "pace of the document",
        "state_limit of the document",
        "pace of box b",
        "state_limit of box c",
    ]
    with pytest.raises(TypeError, match="state_limit"):
        boxes.filter("d", s, where="true", state_limit="4GiB")  # type: ignore[call-arg]


def test_a_missing_schema_is_reported() -> None:
    """Named with the stream."""
    made, s = network()
    boxes.filter("b", s, where="true")
    with pytest.raises(DocumentError, match=r"schema of stream s is missing: sighting\.avsc"):
        made.build({})
