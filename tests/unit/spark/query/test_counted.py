from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import SchemaGuid, SchemaHandle, SchemaId
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.markers.positions import InputPartition
from pipeline.planner.planner import plan
from pipeline.spark.query.counted import COLUMNS, counted
from pipeline.spark.query.emitting.sifted import UNREAD_BYTES
from pipeline.spark.query.hidden import NO_RESULT, SKIPPED, UNFIT
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered, TopicRole
from pipeline.spark.query.metrics import BatchMetrics
from schemas import wire
from tests.unit.planner.networks import OWNER, column, external, network, python, united
from tests.unit.spark.support import SCHEMA, lowering_context

CARS, BIKES = (replace(external(n, column("car")), schema_json=SCHEMA) for n in ("cars", "bikes"))
FAILED = f"{Reason.EVALUATION_FAILED.value}"
NAMES = (*COLUMNS, "timestamp_ms", "reason", "value")
GUID = SchemaGuid(str(UUID(int=5)))


class Row(NamedTuple):
    """The counted columns of a row."""

    origin: int | None
    read_from: int = 0
    timestamp_ms: int | None = None
    reason: str | None = None
    value: bytes | None = None


def two_inputs() -> Lowered:
    """A union of two streams; each has data and redriven records, in this order."""
    planned = plan(network((CARS, BIKES), (united("both", CARS, BIKES),)), OWNER).fragments[0]
    return lower(planned, lowering_context(planned, redrive=True))


LOWERED = two_inputs()
DATA, REDRIVE, OTHERS = range(3)


def count(rows: Sequence[Row], lowered: Lowered = LOWERED) -> BatchMetrics:
    """The counts of some rows; all columns have their types, whatever their values."""
    types = (pa.int32(), pa.int32(), pa.int64(), pa.string(), pa.binary())
    columns = [[row[at] for row in rows] for at in range(len(types))]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return counted(pa.table(dict(zip(NAMES, arrays, strict=True))), lowered)


def unread(origin: int | None, schema: SchemaHandle, rest: bytes = b"") -> Row:
    """A record that was written with a schema."""
    return Row(origin, 0, None, UNFIT, wire.prefix(schema) + rest)


def at(origin: int, partition: int) -> InputPartition:
    """A partition of a topic."""
    source, topic = LOWERED.origins[origin]
    return InputPartition(source.input, topic.topic, partition)


def test_the_topics_are_in_the_order_assumed_here() -> None:
    """Of each input."""
    assert LOWERED.counted
    roles = [TopicRole.DATA, TopicRole.REDRIVE] * 2
    assert [topic.role for _, topic in LOWERED.origins] == roles


def test_a_fragment_without_a_redrive_topic_counts_alike() -> None:
    """It reports an unknown schema all the same."""
    planned = plan(network((CARS,), (united("both", CARS, CARS),)), OWNER).fragments[0]
    lowered = lower(planned, lowering_context(planned))
    assert [topic.role for _, topic in lowered.origins] == [TopicRole.DATA]
    counts = count((Row(0, 0, 5), unread(0, SchemaId(9))), lowered)
    assert (counts.records, counts.bad, counts.unknown) == (2, 1, (SchemaId(9),))


@pytest.mark.parametrize("schema", [SchemaId(2**31 - 1), GUID])
def test_an_unfit_row_contains_all_of_a_schema_prefix(schema: SchemaHandle) -> None:
    """Whatever the registry calls schemas."""
    assert len(wire.prefix(schema)) <= UNREAD_BYTES


def test_an_empty_batch_counts_nothing() -> None:
    """As one in which only positions changed."""
    assert count(()) == BatchMetrics(0, 0, (), {})


def test_a_record_counts_with_or_without_a_result() -> None:
    """And it advances event time, also where a box has refused it."""
    counts = count(
        (
            Row(DATA, 0, 5),
            Row(DATA, 0, 7, NO_RESULT),
            Row(DATA, 1, 9, FAILED),
            Row(OTHERS, 1, 3),
        )
    )
    assert (counts.records, counts.bad) == (4, 1)
    assert counts.largest == {at(DATA, 0): 7, at(DATA, 1): 9, at(OTHERS, 1): 3}


def test_a_record_of_a_settled_time_is_counted_separately() -> None:
    """It was read and is good, and has no result."""
    counts = count((Row(DATA, 0, 5, SKIPPED), Row(DATA, 0, 7), Row(None, 0, 5, SKIPPED)))
    assert (counts.records, counts.bad, counts.skipped) == (2, 0, 1)


def test_an_unjudged_record_does_not_advance_time() -> None:
    """Its event time may be years in the future."""
    counts = count((Row(DATA, 0, 10**12, UNFIT, b"{}"), Row(DATA, 0, None, UNFIT)))
    assert (counts.records, counts.bad, counts.largest) == (2, 2, {})


def test_further_rows_of_a_record_do_not_count() -> None:
    """Those of an array's other elements, and of other paths; but one refused by a box does."""
    counts = count(
        (
            Row(DATA, 0, 5),
            Row(None, 0, 5),
            Row(None, 0, 5, FAILED),
            Row(None, 0, 5, NO_RESULT),
            Row(None, 0, None, UNFIT),
            unread(None, SchemaId(9)),
        )
    )
    assert (counts.records, counts.bad, counts.largest) == (1, 1, {at(DATA, 0): 5})
    assert counts.unknown == ()


def test_a_redriven_record_may_be_of_any_partition() -> None:
    """So it advances the time of all."""
    counts = count((Row(REDRIVE, 1, 5), Row(REDRIVE, 0, 3)))
    assert counts.largest == {at(REDRIVE, 0): 5, at(REDRIVE, 1): 5}


def test_of_unknown_schemas_the_largest_of_each_input_is_reported() -> None:
    """In the order of their prefixes; a GUID's comes after all ids."""
    rows = [unread(DATA, SchemaId(7), b"x"), unread(DATA, SchemaId(9)), unread(OTHERS, GUID, b"yz")]
    assert count(rows).unknown == (9, GUID)
    assert count(rows[:2]).unknown == (9,)


def test_a_schema_neither_planned_nor_recorded_as_missing_is_unknown() -> None:
    """When a record is redriven, the registry may have the schema that was missing."""
    missing = SchemaId(9)
    known = replace(LOWERED, sources=tuple(replace(s, missing=(missing,)) for s in LOWERED.sources))
    (planned, *_), first = LOWERED.sources[0].writers, unread(DATA, missing)
    assert count([unread(DATA, planned.handle)]).unknown == ()
    assert count([first], known).unknown == ()
    assert count([first, unread(REDRIVE, missing)], known).unknown == (missing,)


def test_a_value_in_no_wire_format_names_no_schema() -> None:
    """Whatever its first bytes are."""
    values = (b"", b"{}", b"\x00\x00\x00\x09", b"\x01" + bytes(15), b"\x02" + bytes(40))
    counts = count([Row(DATA, 0, None, UNFIT, value) for value in values])
    assert (counts.bad, counts.unknown) == (len(values), ())


@pytest.mark.parametrize("reason", ["evaluation_failed:box:where:1 / x", FAILED])
def test_failures_are_counted_with_and_without_their_place(reason: str) -> None:
    """The reason may be followed by more text."""
    assert count((Row(DATA, 0, 1, reason),)).bad == 1


def test_a_query_with_a_function_is_observed() -> None:
    """And so is one that keeps state."""
    planned = plan(network((CARS,), (python("doubled", CARS),)), OWNER).fragments[0]
    assert not lower(planned, lowering_context(planned)).counted


REASONS = st.sampled_from((None, NO_RESULT, FAILED, UNFIT))
ORIGINS = st.sampled_from((DATA, REDRIVE, OTHERS))
ROWS = st.lists(
    st.tuples(ORIGINS, st.integers(0, 1), st.integers(1, 50), REASONS).map(lambda one: Row(*one))
)


@given(ROWS)
def test_batch_counts_equal_counts_row_by_row(rows: list[Row]) -> None:
    """A loop over the rows is the reference."""
    largest: dict[InputPartition, int] = {}
    for row in rows:
        if row.reason == UNFIT or row.timestamp_ms is None or row.origin is None:
            continue
        for partition in (0, 1) if row.origin == REDRIVE else (row.read_from,):
            place = at(row.origin, partition)
            largest[place] = max(row.timestamp_ms, largest.get(place, 0))
    counts = count(rows)
    assert counts.largest == largest
    assert (counts.records, counts.bad) == (
        len(rows),
        sum(r.reason in {FAILED, UNFIT} for r in rows),
    )
