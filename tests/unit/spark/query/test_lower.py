import json
from dataclasses import replace

import pytest

from pipeline.dead_letters.redrive_rules import source_paths
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, SchemaId
from pipeline.lanes.source_ids import answered_by, named_sources
from pipeline.markers.positions import InputPartition
from pipeline.network.aggregates import Aggregation
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.aggregate import shape as aggregate_shape
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.sides import How
from pipeline.network.model import Box
from pipeline.network.types import DecimalType, EnumForm, Scalar
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.query.boxes.aggregate import lower as lower_aggregate
from pipeline.spark.query.boxes.aggregate_calls import call
from pipeline.spark.query.boxes.percentiles import approximate
from pipeline.spark.query.lower import lower, with_decoded_mark
from pipeline.spark.query.lowered import (
    DECODED_MARK,
    AsOfCore,
    DeduplicateCore,
    GroupCore,
    JoinCore,
    Keep,
    Project,
    TopicRole,
    WriterSchema,
    as_accepted,
    restricted,
)
from tests.unit.planner.networks import (
    OWNER,
    aggregated,
    as_of_join,
    column,
    deduplicated,
    expression,
    external,
    filtered,
    joined,
    network,
    united,
)
from tests.unit.spark.support import SCHEMA, fragment, lowering_context

CARS = external("cars", column("car"))


def test_a_window_fragment_has_one_path_and_a_window_core() -> None:
    """The merged aggregate of the toll network groups once; the tolls are computed after it."""
    planned = fragment("tolls")
    lowered = lower(planned, lowering_context(planned))
    assert isinstance(lowered.core, GroupCore)
    assert [path.port for path in lowered.paths] == ["only"]
    assert lowered.core.by == ("road", "segment")
    assert isinstance(lowered.after[-1], Project)
    assert lowered.encoding.key_columns == ("road", "segment")


def test_an_aggregate_over_sessions_closes_at_the_boundary_itself() -> None:
    """A session that ends at t accepts a record at t, which a window does not."""
    window = SessionWindow(gap_ms=5_000, longest_ms=60_000)
    box = fragment("tolls").stateful_box
    assert isinstance(box, Aggregate)
    over_windows = lower_aggregate(box)
    sessions = replace(box, window=window)
    over_sessions = lower_aggregate(sessions)
    assert (over_sessions.before, over_sessions.after) == (over_windows.before, over_windows.after)
    assert isinstance(over_sessions.core, GroupCore)
    assert over_sessions.core.window == window
    leads = [aggregate_shape(one, {}).watermark_lead_ms for one in (box, sessions)]
    assert leads == [1, 0]


def test_sessions_follow_a_join_whose_other_side_is_another_leaf() -> None:
    """Spark records the offsets of every leaf, so a planned batch has to name that one, too."""
    planned = fragment("tolls")
    box = planned.stateful_box
    assert isinstance(box, Aggregate)
    over_sessions = replace(box, window=SessionWindow(gap_ms=5_000, longest_ms=60_000))
    boxes = tuple(over_sessions if one is box else one for one in planned.boxes)
    (path,) = lower(planned, lowering_context(planned)).leaves
    assert lower(replace(planned, boxes=boxes), lowering_context(planned)).leaves == (path, path)


def test_a_join_of_two_filters_of_one_stream_reads_one_source_on_two_paths() -> None:
    """Both sides share a source; only the first path reports its bad records."""
    planned = fragment("tow_dispatch")
    lowered = lower(planned, lowering_context(planned))
    assert isinstance(lowered.core, JoinCore)
    assert [source.input for source in lowered.sources] == ["sightings"]
    assert [(path.port, path.first) for path in lowered.paths] == [("left", True), ("right", False)]
    assert all(isinstance(path.steps[0], Keep) for path in lowered.paths)


@pytest.mark.parametrize("redrive", [False, True])
def test_every_source_is_assigned_an_existing_redrive_topic(*, redrive: bool) -> None:
    """Next to the topic that carries the stream; nothing else is read."""
    planned = fragment("toll_notifications")
    lowered = lower(planned, lowering_context(planned, redrive=redrive))
    roles = [TopicRole.DATA, *([TopicRole.REDRIVE] if redrive else [])]
    found = {source.input: [topic.role for topic in source.topics] for source in lowered.sources}
    assert found == {"sightings": roles, "tolls": roles}


def test_a_planned_batch_reads_no_topic_added_later() -> None:
    """It has positions in the others alone; of them it reads the partitions of its positions."""
    planned = fragment("tow_dispatch")
    lowered = lower(planned, lowering_context(planned, redrive=True))
    known = {
        InputPartition(source.input, topic.topic, 0): Offset(0)
        for source in lowered.sources
        for topic in source.topics
        if topic.role is not TopicRole.REDRIVE
    }
    (source,) = restricted(lowered, known).sources
    assert [topic.role for topic in source.topics] == [TopicRole.DATA]
    assert [topic.partitions for topic in source.topics] == [1]


def _planned(*boxes: Box) -> Fragment:
    """The last fragment of a network over one stream of cars."""
    source = replace(CARS, schema_json=SCHEMA)
    return plan(network((source,), boxes), OWNER).fragments[-1]


def test_a_union_has_a_path_for_each_of_its_inputs() -> None:
    """All lead to one port under names of their own; a record on two paths is distinct."""
    part = filtered("part", CARS, "`car` > 1")
    planned = _planned(part, united("both", CARS, part))
    lowered = lower(planned, lowering_context(planned))
    assert lowered.core is None
    assert [source.input for source in lowered.sources] == ["cars"]
    found = [(path.port, path.name, path.first, len(path.steps)) for path in lowered.paths]
    assert found == [("only", "only.1", True, 1), ("only", "only.2", False, 2)]
    assert [lowered.twin(path) for path in lowered.paths] == ["only.1", "only.2"]
    (source,) = named_sources(planned)
    assert source_paths(planned, (source,)) == {(source.id, at) for at in ("", "only.1", "only.2")}


def test_a_union_before_one_side_of_a_join_leaves_the_other_unchanged() -> None:
    """The steps behind the union are on the path of each of its inputs."""
    part = filtered("part", CARS, "`car` > 1")
    both = united("both", CARS, part)
    dear = filtered("dear", both, "`car` > 2")
    pairs = joined("pairs", dear, CARS, (("car", "car"),), {"car": "`left`.`car`"})
    planned = _planned(part, both, dear, pairs)
    lowered = lower(planned, lowering_context(planned))
    found = [(path.port, path.name, path.first) for path in lowered.paths]
    assert found == [("left", "left.1", True), ("left", "left.2", False), ("right", "right", False)]
    first, second, _ = lowered.paths
    assert [type(step) for step in first.steps] == [Project, Keep]
    assert [type(step) for step in second.steps] == [Keep, Project, Keep]
    assert lowered.twin(lowered.paths[-1]) == ""


def test_a_deduplication_reads_each_of_its_paths_twice() -> None:
    """Once as the rows, once as the earlier ones; one path reports a bad record."""
    few = filtered("few", CARS, "`car` > 1")
    both = united("both", CARS, few)
    planned = _planned(few, both, deduplicated("once", both, ("car",), 5))
    lowered = lower(planned, lowering_context(planned))
    assert lowered.core == DeduplicateCore(("car",), 5)
    assert lowered.keeps_key
    assert [path.name for path in lowered.paths] == ["only.1", "only.2"]
    assert lowered.leaves == ("cars",) * 4


def test_an_as_of_join_is_lowered_to_its_compared_columns() -> None:
    """The result's columns are computed after it."""
    box = as_of_join("known", CARS, CARS, (("car", "car"),), {"car": "`left`.`car`"}, 7)
    planned = _planned(replace(box, how=How.LEFT))
    lowered = lower(planned, lowering_context(planned))
    decided = answered_by(planned, named_sources(planned))
    assert lowered.core == AsOfCore((("car", "car"),), 7, How.LEFT, decided, "known")
    assert not lowered.keeps_key
    assert lowered.names_rows
    assert [path.port for path in lowered.paths] == ["left", "right"]
    assert [type(step) for step in lowered.after] == [Project]


def test_a_derived_stream_has_its_event_time_from_kafka() -> None:
    """Its writer put the event time into the record's timestamp; it is not judged."""
    planned = fragment("toll_notifications")
    lowered = lower(planned, lowering_context(planned))
    times = {str(source.input): source.event_time for source in lowered.sources}
    assert times["tolls"].sql is None
    assert times["tolls"].ahead_ms is None
    assert times["sightings"].sql == "timestamp_millis(unix_millis(`at`))"
    assert times["sightings"].ahead_ms == 3_600_000


def test_a_missing_key_schema_is_a_broken_invariant() -> None:
    """A keyed output whose key schema has no id cannot be encoded."""
    planned = fragment("tolls")
    around = replace(lowering_context(planned), key_id=None)
    with pytest.raises(BrokenInvariantError, match="key schema"):
        lower(planned, around)


def test_the_decoded_mark_is_one_more_field_with_a_default() -> None:
    """Every good record has the default, so null can only mean that decoding failed."""
    fields = json.loads(with_decoded_mark(SCHEMA))["fields"]
    assert fields[-1] == {"name": DECODED_MARK, "type": "boolean", "default": True}
    assert fields[:-1] == json.loads(SCHEMA)["fields"]


def test_a_writer_with_another_unit_of_time_is_unfit() -> None:
    """Its values would be decoded to wrong times; so they are not decoded."""

    def timed(unit: str) -> str:
        fields = [{"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}}]
        return json.dumps({"type": "record", "name": "S", "fields": fields})

    planned = fragment("tolls")
    (stream,) = planned.inputs
    planned = replace(planned, inputs=(replace(stream, schema_json=timed("millis")),))
    writers = tuple(
        WriterSchema(SchemaId(number), timed(unit))
        for number, unit in enumerate(("millis", "micros"), start=1)
    )
    foreign = WriterSchema(SchemaId(3), "no schema that our parser knows")
    around = replace(lowering_context(planned), writers={stream.name: (*writers, foreign)})
    found = lower(planned, around).source(stream.name).writers
    assert [writer.handle for writer in found] == [1, 2, 3]
    assert [bool(writer.unfit) for writer in found] == [False, True, False]
    assert "schema id 2: /fields/" in found[1].unfit


@pytest.mark.parametrize(
    ("function", "type_", "expected"),
    [
        ("count", Scalar.LONG, "count(`__argument_a`)"),
        ("count_distinct", Scalar.LONG, "CAST(size(collect_set(`__argument_a`)) AS BIGINT)"),
        ("sum", Scalar.LONG, "try_cast(try_sum(`__argument_a`) AS BIGINT)"),
        ("sum", DecimalType(38, 2), "try_sum(`__argument_a`)"),
        ("max", Scalar.STRING, "max(`__argument_a`)"),
        (
            "first",
            Scalar.STRING,
            (
                "min_by(`__argument_a`, CASE WHEN `__argument_a` IS NOT NULL"
                " THEN struct(`__event_time`, `__position`) END)"
            ),
        ),
        (
            "max_by",
            Scalar.STRING,
            (
                "max_by(`__argument_a`, CASE WHEN `__by_a` IS NOT NULL"
                " THEN struct(`__by_a`, `__event_time`, `__position`) END)"
            ),
        ),
        ("percentile", Scalar.DOUBLE, "percentile(`__argument_a`, 0.5D)"),
    ],
)
def test_aggregate_calls(function: str, type_: Scalar | DecimalType, expected: str) -> None:
    """Each function has one call that never raises."""
    by = expression("`y`") if function == "max_by" else None
    share = ("0.5",) if function == "percentile" else ()
    argument = expression("`x`")
    aggregation = Aggregation(
        "a", function, argument, type_, nullable=True, by=by, parameters=share
    )
    assert call(aggregation) == expected


def test_buckets_of_a_percentile_are_the_same_everywhere() -> None:
    """Their width is computed with decimals, not by the machine's own logarithm."""
    written = approximate("`x`", "0.9", "0.01")
    assert "ceil(ln(abs(`x`)) / 0.020000666706669525D)" in written
    assert "0.99D * exp(" in written


@pytest.mark.parametrize(
    ("function", "carried"), [("first", True), ("min_by", True), ("max", False), ("avg", False)]
)
def test_positions_are_carried_only_where_they_break_ties(
    function: str,
    carried: bool,  # noqa: FBT001 - a table
) -> None:
    """They cost another column of every row."""
    box = aggregated("b", CARS, {}, {"n": (function, "`car`")})
    core = lower_aggregate(box).core
    assert isinstance(core, GroupCore)
    assert core.positions is carried


def test_compared_values_are_computed_and_checked_before_grouping() -> None:
    """As the argument is: a row fails in it, not a result."""
    box = aggregated("b", CARS, {}, {"n": ("max_by", "`car`")})
    by = replace(expression("`at`"), failed="`car` = 0")
    (aggregation,) = box.aggregations
    box = replace(box, aggregations=(replace(aggregation, by=by),))
    (before,) = lower_aggregate(box).before
    assert isinstance(before, Project)
    assert before.columns == (("__argument_agg_0", "`car`"), ("__by_agg_0", "`at`"))
    assert [c.failed for c in before.checks] == ["`car` = 0"]


def test_a_sum_that_overflows_fails_the_result() -> None:
    """A null sum over at least one value is an overflow, not an absence."""
    planned = fragment("tolls")
    box = planned.stateful_box
    assert isinstance(box, Aggregate)
    lowered = lower_aggregate(box)
    (after,) = lowered.after
    assert isinstance(after, Project)
    names = [a.name for a in box.aggregations if a.function == "avg"]
    assert [c.failed for c in after.checks] == [
        f"`{names[0]}` IS NULL AND `__counted_{names[0]}` > 0"
    ]


def test_accepted_records_are_not_judged_again_by_present_settings() -> None:
    """Neither by their time in the future, nor by a schema that was missing at some time."""
    planned = fragment("tolls")
    around = replace(lowering_context(planned), missing=(SchemaId(3),))
    lowered = lower(planned, around)
    (source,) = lowered.sources
    assert (source.event_time.ahead_ms is None, source.missing) == (False, (3,))
    (again,) = as_accepted(lowered).sources
    assert (again.event_time.ahead_ms, again.missing) == (None, ())
    assert again.event_time.sql == source.event_time.sql


def test_a_removed_enum_symbol_fails_a_result() -> None:
    """A state may still contain it; a stateless lane has only new records."""
    form = EnumForm("m.E", ("A", "B"))
    source = external("s", replace(column("a", Scalar.STRING), form=form))
    once = deduplicated("once", source, ("a",), 5)
    (kept,) = plan(network((source,), (once,), ("once",)), OWNER).fragments
    (after,) = lower(kept, lowering_context(kept)).after
    assert [c.failed for c in after.checks] == ["coalesce(`a` NOT IN ('A', 'B'), false)"]
    passed = filtered("passed", source, "`a` > ''")
    (stateless,) = plan(network((source,), (passed,), ("passed",)), OWNER).fragments
    assert lower(stateless, lowering_context(stateless)).after == ()


def test_a_failed_result_of_a_window_has_its_calls() -> None:
    """Their results are in hidden columns."""
    planned = fragment("tolls")
    box = planned.stateful_box
    assert isinstance(box, Aggregate)
    counted = replace(box.aggregations[0], argument=None)
    labels = lower_aggregate(replace(box, aggregations=(counted, *box.aggregations[1:]))).labels
    assert labels[0] == (counted.name, "count(*)")
    assert [name for name, _ in labels] == [a.name for a in box.aggregations]
