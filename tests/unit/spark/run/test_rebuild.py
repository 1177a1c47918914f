from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from brokers.kafka_interface import Isolation, NotNowError
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import Ends
from pipeline.errors import BrokenInvariantError, RefusedError, RetryError
from pipeline.ids import (
    BatchId,
    BoxName,
    Epoch,
    Incarnation,
    Millis,
    Offset,
    SchemaHandle,
    SchemaId,
    StreamName,
    TopicName,
)
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.rebuild_pieces import Piece
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CommittedState, StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered, TopicRole
from pipeline.spark.query.reasons import Why
from pipeline.spark.run.rebuild import (
    TRIES_MAX,
    Log,
    Rebuilding,
    UnlikeError,
    look_up,
    tried,
    with_dead_letters,
)
from pipeline.spark.run.rebuild_batch import with_progress
from tests.unit.kafka import Leaderless, create, fill
from tests.unit.spark.support import fragment, lowering_context

AT = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
WANTED = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
MARKER = first_marker(WANTED, Incarnation("one"), {AT: Offset(5)}, Millis(0))
DONE = BatchFacts(
    batch=BatchId(0),
    end={AT: Offset(5)},
    late_ms=None,
    eviction_ms=None,
    records=5,
    bad=0,
    unknown=(),
    late=0,
    largest={},
    failed={"only": 0},
)
PIECE = Piece(BatchId(0), {AT: Offset(5)}, None)
REBUILDING = Rebuilding(Rebuild(MARKER, None, None, "it is gone"), {AT: Offset(0)}, ())


def test_a_rebuild_that_ended_at_its_expected_positions_is_accepted() -> None:
    """Without a message."""
    REBUILDING.check(DONE, PIECE, "here")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (replace(DONE, batch=BatchId(1)), "batch 1 instead of 0"),
        (replace(DONE, end={AT: Offset(4)}), "batch 0 ended at other positions"),
        (replace(DONE, eviction_ms=Millis(7)), "watermark 7 instead of None"),
        (replace(DONE, late=1), "rows counted as late"),
    ],
)
def test_an_unexpected_state_is_not_used(facts: BatchFacts, said: str) -> None:
    """It is an internal error."""
    with pytest.raises(BrokenInvariantError, match=said) as caught:
        REBUILDING.check(facts, PIECE, "here")
    assert (caught.value.place, "report this" in caught.value.hint) == ("here", True)


def gone(offset: int, port: str = "", reason: Reason = Reason.SCHEMA_NOT_FOUND) -> Rejected:
    """A record that cannot be decoded any more."""
    return Rejected(
        input=AT.input,
        port=port,
        why=Why(reason, "the registry has no schema with id 7"),
        topic=AT.topic,
        partition=0,
        offset=Offset(offset),
        timestamp_ms=Millis(1),
        key=None,
        value=b"",
        headers=(),
    )


def check_accepted(facts: BatchFacts, found: list[Rejected]) -> None:
    """Check a rebuild with these results of its inspection."""
    boxes = {"only": (BoxName("rated"),)}
    REBUILDING.check_accepted(facts, lambda: found, boxes, "fragment net.rated")


def test_records_accepted_before_have_to_be_accepted_again() -> None:
    """Otherwise the lane stops and names the first records; only then there is an inspection."""
    REBUILDING.check_accepted(DONE, lambda: pytest.fail("nothing is bad"), {}, "here")
    with pytest.raises(RefusedError) as caught:
        check_accepted(replace(DONE, bad=9), [gone(offset) for offset in range(9)])
    error = caught.value
    assert error.place == "fragment net.rated"
    assert "9 records that had been accepted cannot be read now" in error.message
    assert "partition 0, offset 0: the registry has no schema with id 7" in error.message
    assert "offset 4: " in error.message
    assert "offset 5: " not in error.message
    assert "--state FRAGMENT=rebuild" in error.hint


FAILED = replace(DONE, bad=1, failed={"only": 9})


@pytest.mark.parametrize("found", [[], [gone(3, "only", Reason.EVALUATION_FAILED)]])
def test_a_function_that_refuses_accepted_records_is_named(found: list[Rejected]) -> None:
    """Also if the inspection finds them to be good again."""
    with pytest.raises(UnlikeError) as caught:
        check_accepted(FAILED, found)
    assert caught.value.place == "box rated"
    assert "mend it and deploy" in caught.value.hint


def test_a_missing_schema_takes_precedence_over_functions() -> None:
    """No further rebuild would help."""
    with pytest.raises(RefusedError, match="cannot be read now"):
        check_accepted(FAILED, [gone(3), gone(4, "only", Reason.EVALUATION_FAILED)])


@pytest.mark.parametrize(("failures", "emptied"), [(0, 0), (2, 2), (3, 2), (99, 2)])
def test_a_rebuild_is_retried_a_few_times_and_then_the_lane_stops(
    failures: int, emptied: int
) -> None:
    """Once, with the choices; each time in an empty folder."""
    done, folders = list[Lowered](), list[int]()
    planned = fragment("tolls")
    lowered = lower(planned, lowering_context(planned))

    def rebuild() -> Lowered:
        done.append(lowered)
        if len(done) <= failures:
            raise UnlikeError("unlike", place="box rated", hint="mend it")
        return lowered

    if failures < TRIES_MAX:
        assert tried(rebuild, lambda: folders.append(1)) is lowered
    else:
        with pytest.raises(RefusedError, match="given up after 3 rebuilds") as caught:
            tried(rebuild, lambda: folders.append(1))
        assert caught.value.place == "box rated"
        assert caught.value.hint.startswith("mend it. Or deploy with `--state FRAGMENT=rebuild`")
    assert (len(done), len(folders)) == (emptied + 1, emptied)


@dataclass
class Registry:
    """Has one schema."""

    recorded: list[SchemaHandle] = field(default_factory=list)

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """That one."""
        return tuple(one for one in handles if one == SchemaId(7))

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """That one; the others are recorded."""
        self.recorded += [one for one in handles if one != SchemaId(7)]
        return self.existing(handles)


@pytest.mark.parametrize(("chosen", "recorded"), [(False, []), (True, [SchemaId(8)])])
def test_a_missing_schema_is_recorded_only_by_a_chosen_rebuild(
    chosen: bool,  # noqa: FBT001 - a parameter
    recorded: list[SchemaId],
) -> None:
    """An automatic one that is retried after the schema is back has to find it."""
    registry = Registry()
    assert look_up((SchemaId(7), SchemaId(8)), registry, chosen=chosen) == (SchemaId(7),)
    assert registry.recorded == recorded


class Kafka(Leaderless):
    """The topics of a fragment, with two partitions; records those that were read."""

    def __init__(self, names: FragmentNames, inputs: Iterable[TopicName]) -> None:
        super().__init__()
        self.read_topics: list[TopicName] = []
        create(self, names.dead_letters, names.redrive, *inputs, partitions=2)
        for topic in inputs:
            fill(self, topic, 3, 9)

    def reader(self, timeout_s: float, **more: Any) -> "Reader":
        """A reader whose topics are recorded."""
        del more
        return Reader(self, timeout_s, Isolation.COMMITTED)


class Reader(MemoryReader):
    """Records the topics that were read."""

    def __init__(self, kafka: Kafka, timeout_s: float, isolation: Isolation) -> None:
        super().__init__(kafka, timeout_s, isolation)
        self._kafka = kafka

    def assign(self, starts: Ends) -> None:
        """Record them."""
        self._kafka.read_topics.extend(starts)
        super().assign(starts)


def cluster(*leaderless: str, absent: str = "") -> Kafka:
    """A Kafka in which some topics have no leader, and one does not exist."""
    inputs = {t.topic for source in tolls().sources for t in source.topics}
    kafka = Kafka(fragment("tolls").names, sorted(inputs))
    kafka.leaderless = leaderless
    kafka.delete_topics((TopicName(absent),))
    return kafka


def log(*leaderless: str, absent: str = "") -> Log:
    """The log of inputs in such a Kafka."""
    kafka = cluster(*leaderless, absent=absent)
    return Log(kafka, kafka)


def tolls() -> Lowered:
    """A fragment with state."""
    planned = fragment("tolls")
    return lower(planned, lowering_context(planned))


def ended(lowered: Lowered, offset: int) -> Mapping[InputPartition, Offset]:
    """Positions at an offset in each partition."""
    return {
        InputPartition(s.input, t.topic, p): Offset(offset)
        for s in lowered.sources
        for t in s.topics
        for p in range(t.partitions)
    }


def test_a_rebuild_waits_for_unreadable_dead_letters() -> None:
    """Without them it would count records that were skipped."""
    lowered = tolls()
    start = Rebuild(replace(MARKER, end=ended(lowered, 5)), ended(lowered, 4), None, "it is gone")
    names = fragment("tolls").names
    with pytest.raises(NotNowError) as caught:
        log(names.dead_letters).prepare(start, lowered, names)
    assert caught.value.place == f"topic {names.dead_letters}"


def test_a_chosen_rebuild_reads_redriven_records_in_any_case() -> None:
    """They may have been sent meanwhile. Without a redrive topic there are none."""
    lowered, names = tolls(), fragment("tolls").names
    assert TopicRole.REDRIVE not in {t.role for s in lowered.sources for t in s.topics}
    start = Rebuild(replace(MARKER, end=ended(lowered, 5)), None, None, "asked", chosen=True)
    without = cluster(absent=names.redrive)
    Log(without, without).prepare(start, lowered, names)
    assert without.read_topics == [names.dead_letters]
    kafka = cluster()
    Log(kafka, kafka).prepare(start, lowered, names)
    assert kafka.read_topics == [names.dead_letters, names.redrive]
    with pytest.raises(NotNowError) as caught:
        log(names.redrive).prepare(start, lowered, names)
    assert caught.value.place == f"topic {names.redrive}"


def test_a_missing_partition_is_another_topic() -> None:
    """It was recreated with fewer while the lane was starting; the next start compares its id."""
    lowered = tolls()
    at = min(ended(lowered, 5))
    marker = replace(MARKER, end={**ended(lowered, 5), replace(at, partition=7): Offset(1)})
    with pytest.raises(RetryError, match="the partition is gone") as caught:
        log().prepare(Rebuild(marker, None, None, "it is gone"), lowered, fragment("tolls").names)
    assert caught.value.place == f"topic {at.topic}, partition 7"


def test_an_input_without_a_leader_is_waited_for() -> None:
    """Also by the check for deleted records: no response is not success."""
    lowered = tolls()
    away = lowered.sources[0].topics[0].topic
    marker = replace(MARKER, end=ended(lowered, 5))
    with pytest.raises(NotNowError):
        log(away).earliest(lowered)
    with pytest.raises(NotNowError):
        log(away).overtaken(marker, lowered, fragment("tolls").name)
    assert log().overtaken(marker, lowered, fragment("tolls").name) is None


def test_a_rebuild_after_a_checkpoint_reads_from_there_and_needs_what_the_log_needs() -> None:
    """The state contains older records, so a later rebuild needs their dead letters, too."""
    lowered, names = tolls(), fragment("tolls").names
    marker = replace(MARKER, end=ended(lowered, 8), letters_from={0: Offset(0)})
    since = CommittedState(BatchId(4), ended(lowered, 8), Millis(7))
    start = Rebuild(marker, ended(lowered, 3), None, "it is older", since=since)
    found = log().prepare(start, lowered, names)
    assert (found.begin, found.needed) == (since.end, start.begin)
    assert found.start.marker.letters_from == marker.letters_from
    found = log().prepare(replace(start, since=None), lowered, names)
    assert found.begin == found.needed == start.begin


def test_a_topic_of_which_nothing_is_missing_is_not_asked() -> None:
    """It may be out of reach. Of one that is read the records have to be there."""
    planned = fragment("tolls")
    lowered, names = lower(planned, lowering_context(planned, redrive=True)), planned.names
    marker, at_end = replace(MARKER, end=ended(lowered, 8)), names.redrive
    end = {at: Offset(8 if at.topic == at_end else 7) for at in marker.end}
    since = CommittedState(BatchId(4), end, Millis(7))
    start = Rebuild(marker, ended(lowered, 3), None, "it is older", since=since)
    assert log(at_end).prepare(start, lowered, names).begin == end
    with pytest.raises(NotNowError):
        log(planned.inputs[0].topic).prepare(start, lowered, names)


LETTERS = TopicName("local.net.cars.dlq")
NEEDS = replace(MARKER, letters_from={0: Offset(4), 1: Offset(6)})
BEGIN = {AT: Offset(0)}


def test_a_rebuild_is_refused_when_needed_dead_letters_are_deleted() -> None:
    """Otherwise skipped records would count: a pair with a row that was late."""
    start = Rebuild(NEEDS, BEGIN, None, "it is gone")
    assert with_dead_letters(start, {0: Offset(4), 1: Offset(0)}, LETTERS) == start
    with pytest.raises(RefusedError) as caught:
        with_dead_letters(start, {0: Offset(0), 1: Offset(7)}, LETTERS)
    assert caught.value.place == "topic local.net.cars.dlq, partition 1"
    assert "from offset 6 on, and the topic begins at 7" in caught.value.message
    assert "--state FRAGMENT=rebuild" in caught.value.hint
    assert "--state FRAGMENT=empty" in caught.value.hint


def test_a_rebuild_that_reads_nothing_needs_no_dead_letters() -> None:
    """A state that begins empty."""
    start = Rebuild(NEEDS, MARKER.end, None, "asked")
    assert with_dead_letters(start, {0: Offset(9), 1: Offset(9)}, LETTERS).marker.letters_from == {}


def test_a_chosen_rebuild_uses_the_existing_dead_letters() -> None:
    """A later one then needs the same."""
    starts = {0: Offset(9), 1: Offset(2)}
    start = with_dead_letters(Rebuild(NEEDS, None, None, "asked"), starts, LETTERS)
    assert start.marker.letters_from == starts


def test_a_chosen_rebuild_computes_the_event_times_of_its_rows() -> None:
    """By another definition they were smaller, and the rows would seem to be not needed."""
    lowered = tolls()
    first, second, *_ = sorted(ended(lowered, 5))
    marker = replace(MARKER, end=ended(lowered, 5), progress={first: Millis(5), second: Millis(9)})
    done = Rebuilding(Rebuild(marker, {}, None, ""), {}, ())
    found = with_progress(done, {first: Millis(8), second: Millis(7)})
    assert found.start.marker.progress == {first: 8, second: 9}
