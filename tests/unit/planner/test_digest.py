import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import SourceId, StreamName, TopicName
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.sides import How, Pair
from pipeline.network.model import ExternalStream, Network, Origin
from pipeline.network.types import Columns, EnumForm, Scalar
from pipeline.planner.digest import (
    answer_digest,
    fragment_digest,
    plan_digest,
    source_digest,
    state_digest,
    timing_digest,
)
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from tests.unit.planner.networks import (
    OWNER,
    as_of_join,
    column,
    deduplicated,
    expression,
    external,
    filtered,
    joined,
    network,
    python,
)

SOURCE = external("s", column("a"))
WIDER = external("s", column("a"), column("new"))
KEPT = filtered("kept", SOURCE, "`a` > 1")
BASE = network((SOURCE,), (KEPT,), ("kept",))


def _fragment(of: Network) -> Fragment:
    (fragment,) = plan(of, OWNER).fragments
    return fragment


def _with_source(**changes: object) -> Network:
    return replace(BASE, streams=(replace(SOURCE, **changes),))  # type: ignore[arg-type]  # keywords


def _corrected(of: Network) -> Network:
    return replace(of, outputs=tuple(replace(o, corrections=True) for o in of.outputs))


def _with_where(change: Callable[[Filter], Filter]) -> Network:
    return replace(BASE, boxes=(change(KEPT),))


@pytest.mark.parametrize(
    "other",
    [
        _with_source(lateness_ms=1),
        _with_source(topic="elsewhere"),
        _with_source(schema_json=WIDER.schema_json),
        _with_where(lambda box: replace(box, where=replace(box.where, sql="`a` > 2"))),
        _with_where(lambda box: replace(box, key=("a",))),
        replace(BASE, outputs=(replace(BASE.outputs[0], topic="elsewhere"),)),  # type: ignore[arg-type]  # a plain name
        replace(BASE, name="other"),  # type: ignore[arg-type]  # a plain name
    ],
)
def test_semantic_changes_change_the_digest(other: Network) -> None:
    """Expressions, topics, schemas, time settings and names all count."""
    assert fragment_digest(_fragment(other)) != fragment_digest(_fragment(BASE))


@pytest.mark.parametrize(
    "other",
    [
        _with_source(partitions=99),
        _with_source(retention_ms=99),
        _with_source(subject="other"),
        _with_source(schema_json=SOURCE.schema_json.replace("{", '{"doc": "said anew",', 1)),
        _with_where(lambda box: replace(box, where=replace(box.where, text="a>1"))),
        _with_where(lambda box: replace(box, where=replace(box.where, origin=Origin("b", "w")))),
        replace(BASE, outputs=(replace(BASE.outputs[0], partitions=99),)),
        replace(BASE, outputs=(replace(BASE.outputs[0], retention_ms=99),)),
        replace(BASE, retention_ms=1),
    ],
)
def test_changes_without_effect_keep_the_digest(other: Network) -> None:
    """Notation, and the settings with which a topic would be created, restart nothing."""
    assert fragment_digest(_fragment(other)) == fragment_digest(_fragment(BASE))


def test_ids_belong_to_a_state_of_rows_only() -> None:
    """Buffered rows keep theirs; a fragment without state, or a window, has none."""
    kept = _corrected(BASE)
    assert fragment_digest(_fragment(kept)) != fragment_digest(_fragment(BASE))
    assert state_digest(_fragment(kept)) == state_digest(_fragment(BASE))
    for box in (PAIRS, ONCE):
        base = network((SOURCE,), (box,), (str(box.name),))
        assert state_digest(_fragment(_corrected(base))) != state_digest(_fragment(base))


PAIRS = joined("pairs", SOURCE, SOURCE, (("a", "a"),), {"a": "`left`.`a`"})
ONCE = deduplicated("once", SOURCE, ("a",), 5)


def test_an_unread_column_is_no_part_of_a_state() -> None:
    """A producer adds it, and the state stays valid; of results it would be a part."""
    before, after = (
        state_digest(_fragment(network((source,), (PAIRS,), ("pairs",))))
        for source in (SOURCE, WIDER)
    )
    assert before == after
    before, after = (
        state_digest(_fragment(network((source,), (box,), ("once",))))
        for source in (SOURCE, WIDER)
        for box in (deduplicated("once", source, ("a",), 5),)
    )
    assert before != after


def test_another_type_of_a_column_that_is_read_is_another_state() -> None:
    """Or another default of it: rows would differ."""
    other = replace(SOURCE, schema_json=SOURCE.schema_json.replace('"long"', '"int"', 1))
    assert other.schema_json != SOURCE.schema_json
    before, after = (
        state_digest(_fragment(network((source,), (PAIRS,), ("pairs",))))
        for source in (SOURCE, other)
    )
    assert before != after


def test_an_added_enum_symbol_is_no_other_state() -> None:
    """Its values are strings; accepted records are data."""
    enum = '{"type":"enum","name":"E","symbols":["x"]}'
    schema = SOURCE.schema_json.replace('["null","long"],"default":null', enum)
    assert enum in schema
    before, after = (
        state_digest(_fragment(network((replace(SOURCE, schema_json=text),), (PAIRS,), ("pairs",))))
        for text in (schema, schema.replace('["x"]', '["x", "y"]'))
    )
    assert before == after


def test_symbols_of_an_enum_with_a_default_are_part_of_the_state() -> None:
    """A record of another symbol is read as the default, and later as itself."""
    enum = '{"type":"enum","name":"E","symbols":["x"],"default":"x"}'
    schema = SOURCE.schema_json.replace('["null","long"],"default":null', enum)
    assert enum in schema
    before, after = (
        state_digest(_fragment(network((replace(SOURCE, schema_json=text),), (PAIRS,), ("pairs",))))
        for text in (schema, schema.replace('["x"]', '["x", "y"]'))
    )
    assert before != after


def test_a_field_that_cannot_be_read_is_no_part_of_the_state() -> None:
    """No box reads it."""
    source = replace(SOURCE, unreadable=(("any", "a union of several types"),))
    before, after = (
        state_digest(_fragment(network((one,), (PAIRS,), ("pairs",)))) for one in (SOURCE, source)
    )
    assert before == after


def test_an_added_symbol_of_a_passed_enum_is_another_output() -> None:
    """The output schema differs; the state is the same, also that of its readers."""

    def fragments(*symbols: str) -> tuple[Fragment, ...]:
        form = EnumForm("m.E", symbols)
        source = external("s", replace(column("a", Scalar.STRING), form=form))
        once = deduplicated("once", source, ("a",), 5)
        twice = deduplicated("twice", once, ("a",), 5)
        return plan(network((source,), (once, twice), ("once", "twice")), OWNER).fragments

    for before, after in zip(fragments("x"), fragments("x", "y"), strict=True):
        assert '"symbols":["x","y"]' in after.output.schema_json
        assert fragment_digest(before) != fragment_digest(after)
        assert state_digest(before) == state_digest(after)


def test_event_times_depend_on_their_expression_and_its_columns() -> None:
    """Not on other columns, nor on the topic of the stream."""
    moved = replace(WIDER, name=StreamName("t"), topic=TopicName("other"), lateness_ms=1)
    assert timing_digest(moved) == timing_digest(SOURCE)
    assert source_digest(moved) != source_digest(SOURCE)
    later = replace(SOURCE, event_time=expression("`at` + 1", Scalar.TIMESTAMP))
    assert timing_digest(later) != timing_digest(SOURCE)
    micros = SOURCE.schema_json.replace("timestamp-micros", "timestamp-millis")
    assert micros != SOURCE.schema_json
    assert timing_digest(replace(SOURCE, schema_json=micros)) != timing_digest(SOURCE)


def _calling(**changes: object) -> Fragment:
    box = replace(python("doubled", SOURCE), **changes)  # type: ignore[arg-type]  # keywords
    return _fragment(network((SOURCE,), (box,), ("doubled",)))


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "def double(batch): ... # otherwise"},
        {"function": "numbers.py:triple"},
        {"columns": (column("thrice"),)},
    ],
)
def test_another_function_is_another_box(changes: dict[str, object]) -> None:
    """So is one whose source text has changed; its state does not fit either."""
    assert fragment_digest(_calling(**changes)) != fragment_digest(_calling())
    assert state_digest(_calling(**changes)) != state_digest(_calling())


def test_the_time_limit_of_a_function_is_no_part_of_the_state() -> None:
    """The fragment starts again, and continues at its positions."""
    assert fragment_digest(_calling(timeout_ms=1)) != fragment_digest(_calling())
    assert state_digest(_calling(timeout_ms=1)) == state_digest(_calling())


LEFT, RIGHT = (
    external(name, column("car"), column("fee"), column("note")) for name in ("cars", "fees")
)
DIV = "`left`.`fee` / `right`.`fee`"


def _answering(
    select: str = DIV,
    left: ExternalStream = LEFT,
    right: ExternalStream = RIGHT,
    on: Pair = ("car", "car"),
    behind: str = "",
    **changes: object,
) -> str:
    """The digest of an as-of join's matches, with a filter on either side."""
    few, some = filtered("few", left, "`fee` > 0"), filtered("some", right, "`fee` > 0")
    box = as_of_join("priced", few, some, (on,), {"part": select}, 7)
    box = replace(box, **changes)  # type: ignore[arg-type]  # keywords
    last = (filtered("last", box, behind),) if behind else ()
    (fragment,) = plan(network((left, right), (few, some, box, *last)), OWNER).fragments
    return answer_digest(
        fragment, {stream.name: SourceId(stream.topic) for stream in (left, right)}
    )


@pytest.mark.parametrize(
    "same",
    [
        _answering("`right`.`fee` + 1"),
        _answering("`left`.`fee` / `right`.`fee` + length(`left`.`note`)"),
        _answering(left=replace(LEFT, lateness_ms=5), right=replace(RIGHT, idle_after_ms=5)),
        _answering(behind="`part` > 0"),
        _answering(left=replace(LEFT, topic=TopicName("other")), right=RIGHT),
        _answering(right=replace(RIGHT, name=StreamName("other"))),
    ],
    ids=["select", "another column of the rows", "patience", "a box behind", "rows", "name"],
)
def test_expressions_over_a_match_do_not_change_its_digest(same: str) -> None:
    """A corrected expression uses the former matches."""
    assert same == _answering()


@pytest.mark.parametrize(
    "other",
    [
        _answering("`left`.`fee` / `right`.`fee` + length(`right`.`note`)"),
        _answering(within_ms=8),
        _answering(how=How.LEFT),
        _answering(on=("fee", "fee")),
        _answering(left=replace(LEFT, event_time=expression("`at` + 1"))),
        _answering(right=replace(RIGHT, event_time=expression("`at` + 1"))),
        _answering(right=replace(RIGHT, topic=TopicName("other"))),
    ],
    ids=["another column of the table", "within", "how", "on", "time of rows", "of it", "table"],
)
def test_changes_of_a_match_change_its_digest(other: str) -> None:
    """Then the former matches are not valid."""
    assert other != _answering()


def test_only_as_of_joins_have_matches() -> None:
    """So no other fragment has an equal digest."""
    assert answer_digest(_fragment(BASE), {}) == ""


def test_plan_digest_covers_topics() -> None:
    """A topic that would be created differently is a new version, though nothing restarts."""
    other = replace(BASE, retention_ms=1)
    assert plan_digest(plan(other, OWNER)) != plan_digest(plan(BASE, OWNER))
    assert plan_digest(plan(BASE, OWNER)) == plan_digest(plan(BASE, OWNER))


def test_digest_is_the_same_in_every_process() -> None:
    """It contains no order of a set, no address and no hash seed."""
    program = (
        "from tests.unit.planner.test_digest import BASE, _fragment\n"
        "from pipeline.planner.digest import fragment_digest\n"
        "print(fragment_digest(_fragment(BASE)))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(["", *sys.path])},
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {fragment_digest(_fragment(BASE))}


def test_digest_contains_its_format() -> None:
    """The part before the colon is increased when the way of hashing changes."""
    assert fragment_digest(_fragment(BASE)).startswith("1:")


def test_unknown_content_is_an_error() -> None:
    """A plan with a value without a canonical form does not get a digest."""
    columns: Columns = (object(),)  # type: ignore[assignment]  # exactly what must not happen
    with pytest.raises(BrokenInvariantError):
        fragment_digest(replace(_fragment(BASE), boxes=(replace(KEPT, columns=columns),)))
