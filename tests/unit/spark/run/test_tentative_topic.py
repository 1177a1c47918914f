"""The tentative topic of one lane: results of forks are sent, and each of them is settled."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pytest

from brokers.kafka_interface import NotNowError
from brokers.records import Headers, TopicDescription
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, MedusaError, RefusedError, RetryError
from pipeline.ids import Epoch, Offset, TopicName
from pipeline.lanes.result_headers import RESULT_ID, WRITTEN_TO
from pipeline.lanes.tentative_state import TentativeCounts as Counts
from pipeline.spark.run.tentative_topic import Places, TentativeTopic
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import DoneMark, TentativeResult
from tests.unit.kafka import create, grow
from tests.unit.spark.batch.test_results import results
from tests.unit.spark.run.tentative_world import (
    NOTHING,
    PARTITIONS,
    STABLE,
    TENTATIVE,
    KilledError,
    World,
    life,
    of_fork,
    published,
    settle,
)


def test_results_are_confirmed_replaced_and_undone() -> None:
    """Undos come before the done marks, which are in each partition."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10), ("c", 10), ("d", 30))
    assert topic.counts == Counts(published=4, open_results=4)
    world.stable("a", 10)
    world.stable("b", 10, "another", partition=1)
    settle(topic, 20)
    assert topic.counts == Counts(4, confirmed=1, replaced=1, undone=1, open_results=1)
    assert (world.undone, world.done) == ([b"c"], [])
    world.stable("d", 30)
    settle(topic, 30)
    assert topic.counts == Counts(4, confirmed=2, replaced=1, undone=1)
    assert (world.undone, topic.is_settled) == ([b"c"], True)
    assert sorted(world.done) == [("1.1", 0), ("1.1", 1)]
    for partition in range(PARTITIONS):
        last = [one for one in world.written if one.partition == partition][-1]
        assert isinstance(last, DoneMark)


def test_results_are_as_the_stable_ones_would_be() -> None:
    """Key, value, event time and partition; the id is in a header."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(4), NOTHING)
    assert topic.publish(generation, of_fork(generation, ("a", 10))) == 1
    (found,) = world.written
    assert isinstance(found, TentativeResult)
    assert (found.key, found.value, found.timestamp_ms, found.id) == (b"a", b"v", 10, b"a")
    assert str(found.generation) == "4.1"


def test_a_batch_without_results_sends_nothing() -> None:
    """Nothing of it is to be settled."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    assert topic.publish(generation, of_fork(generation)) == 0
    assert (world.raw, topic.is_settled) == ([], True)


def test_a_fork_that_has_published_nothing_leaves_no_trace() -> None:
    """No done mark; the next fork has its number."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    topic.end(generation)
    settle(topic, 100)
    assert (world.raw, topic.is_settled) == ([], True)
    assert topic.begin(Epoch(1), NOTHING) == generation


def test_generations_are_counted_across_restarts() -> None:
    """In each epoch from 1."""
    world = World()
    assert str(published(world.opened(), ("a", 10))) == "1.1"
    again = world.opened()
    assert str(published(again, ("b", 10))) == "1.2"
    assert str(again.begin(Epoch(2), NOTHING)) == "2.1"


def test_what_is_settled_is_not_published() -> None:
    """The stable boundary has passed it."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    topic.publish(generation, of_fork(generation, ("a", 10), ("b", 30)))
    settle(topic, 20)
    assert topic.publish(generation, of_fork(generation, ("c", 20), ("d", 21))) == 1
    found = {one.id for one in world.written if isinstance(one, TentativeResult)}
    assert found == {b"a", b"b", b"d"}


def test_too_many_open_results_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the batch is sent then."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    monkeypatch.setattr(topic._settling, "_most", 2)
    topic.publish(generation, of_fork(generation, ("a", 10)))
    with pytest.raises(RefusedError, match="1 tentative results are open: 2 more are too many"):
        topic.publish(generation, of_fork(generation, ("b", 10), ("c", 10)))
    assert topic.counts == Counts(published=1, open_results=1)


def test_the_next_fork_publishes_again_however_many_results_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its results take the places of those that the last one has published."""
    world = World()
    topic = world.opened()
    monkeypatch.setattr(topic._settling, "_most", 2)
    published(topic, ("a", 10), ("b", 10))
    published(topic, ("a", 10), ("b", 10))
    assert topic.counts == Counts(published=4, open_results=2)


def test_results_without_ids_are_a_broken_invariant() -> None:
    """They could not be settled."""
    topic = World().opened()
    generation = topic.begin(Epoch(1), NOTHING)
    with pytest.raises(BrokenInvariantError, match="no id"):
        [*topic.made(generation, results((b"k", b"v", 10, None)))]


def test_it_is_resumed_before_anything_else() -> None:
    """What an earlier process has left is not known otherwise."""
    world = World()
    topic = TentativeTopic(Places(STABLE, world.id, TENTATIVE), world.kafka, world.kafka)
    assert not topic.is_settled
    assert topic.counts == Counts()
    with pytest.raises(BrokenInvariantError, match="before what is there was read"):
        topic.begin(Epoch(1), NOTHING)


# --- the stable topic -----------------------------------------------------------------------------


def test_an_open_transaction_delays_settling() -> None:
    """The results that belong to the promise may not be visible yet."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10))
    writer = world.transaction("a", 10)
    settle(topic, 20)
    assert (world.undone, topic.is_settled) == ([], False)
    world.commit(writer)
    settle(topic, 20)
    assert (world.undone, topic.is_settled) == ([b"b"], True)
    assert topic.counts.confirmed == 1


def test_settling_ends_although_a_transaction_is_always_open() -> None:
    """The promise is settled that was made before the one that is open now."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10))
    writer = world.transaction("a", 10)
    for step in range(3):
        settle(topic, 20 + step)
        begun = world.transaction(f"later-{step}", 30 + step)
        world.commit(writer)
        writer = begun
    settle(topic, 40)
    assert (world.undone, topic.is_settled) == ([b"b"], True)
    assert {one.promised_ms for one in world.written if isinstance(one, DoneMark)} == {20}


def test_a_result_of_an_aborted_transaction_confirms_nothing() -> None:
    """It is not visible."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10))
    writer = world.transaction("a", 10)
    writer.abort(Deadline.after(world.kafka.clock, 1, "aborting"))
    settle(topic, 20)
    assert world.undone == [b"a"]


def test_foreign_stable_records_confirm_nothing() -> None:
    """Without the id of the topic, with another one, or without an id of a result."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10))
    world.stable("a", 10, topic="deleted")
    world.kafka.append(STABLE, b"b", b"v", timestamp_ms=10, partition=0)
    world.kafka.append(
        STABLE, b"b", b"v", timestamp_ms=10, headers=((RESULT_ID, b"b"),), partition=0
    )
    settle(topic, 20)
    assert sorted(world.undone) == [b"a", b"b"]


def test_foreign_tentative_records_do_not_count() -> None:
    """Nor those of a stable topic that was deleted, or with damaged headers."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10))
    own = world.raw[0]
    others: Sequence[Headers] = (
        (),
        tuple((name, b"deleted" if name == WRITTEN_TO else value) for name, value in own.headers),
        tuple((name, b"0.0" if "gen" in name else value) for name, value in own.headers),
    )
    for headers in others:
        world.kafka.append(TENTATIVE, b"x", b"v", timestamp_ms=10, headers=headers, partition=0)
    again = world.opened()
    assert again.counts.open_results == 1
    settle(again, 20)
    assert world.undone == [b"a"]


@pytest.mark.parametrize("value", ["other", None])
def test_a_corrected_id_is_settled_once(value: str | None) -> None:
    """By the first stable record; a correction without a value does not undo it."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10))
    world.stable("a", 10)
    world.stable("a", 10, value, correction="1")
    world.stable("b", 10, value, correction="1")
    settle(topic, 20)
    assert topic.counts == Counts(2, confirmed=1, replaced=1)
    assert world.undone == []


def test_results_beyond_the_visible_ends_are_read_by_the_next_settlement() -> None:
    """Although the driver's position is beyond them: it reads what is in the same answer."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 30))
    world.stable("a", 10)
    visible = world.ends
    world.stable("b", 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            world.kafka,
            "end_offsets",
            lambda topics, _=None: dict.fromkeys(topics, visible[STABLE]),
        )
        settle(topic, 20)
    settle(topic, 30)
    assert (topic.counts.confirmed, world.undone) == (2, [])


def test_new_partitions_of_the_output_are_read_from_their_beginning() -> None:
    """Also if retention has removed records there."""
    world = World()
    topic = world.opened(world.ends)
    published(topic, ("a", 10), ("b", 10))
    grow(world.kafka, STABLE, 3)
    world.stable("x", 1, partition=2)
    world.stable("a", 10, partition=2)
    world.kafka.delete_records(STABLE, {2: Offset(1)})
    settle(topic, 20)
    assert (topic.counts.confirmed, world.undone) == (1, [b"b"])


def test_a_position_that_retention_has_passed_does_not_matter() -> None:
    """What was removed cannot confirm anything."""
    world = World()
    for _ in range(5):
        world.stable("old", 1)
    topic = world.opened({STABLE: {0: Offset(2)}})
    published(topic, ("a", 10))
    world.stable("a", 10)
    world.kafka.delete_records(STABLE, {0: Offset(4)})
    settle(topic, 20)
    assert (topic.counts.confirmed, topic.is_settled) == (1, True)


def test_new_partitions_of_the_tentative_topic_get_done_marks() -> None:
    """From the next fork on."""
    world = World()
    topic = world.opened()
    grow(world.kafka, TENTATIVE, 3)
    published(topic, ("a", 10))
    settle(topic, 20)
    assert sorted(world.done) == [("1.1", 0), ("1.1", 1), ("1.1", 2)]


# --- errors and crashes ---------------------------------------------------------------------------


def test_while_the_stable_topic_does_not_answer_results_are_published() -> None:
    """It may be what is missing; what is open is settled later."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    topic.publish(generation, of_fork(generation, ("a", 10)))
    world.kafka.leaderless = (STABLE,)
    with pytest.raises(NotNowError):
        settle(topic, 20)
    assert topic.publish(generation, of_fork(generation, ("b", 10))) == 1
    topic.end(generation)
    assert str(topic.begin(Epoch(1), NOTHING)) == "1.2"
    world.kafka.leaderless = ()
    world.stable("b", 10)
    settle(topic, 20)
    assert (world.undone, topic.counts.confirmed) == ([b"a"], 1)


def test_a_fork_begins_while_a_partition_of_its_topic_has_no_leader() -> None:
    """A broker that is away may be the reason why one is needed."""
    world = World()
    topic = world.opened()
    world.kafka.leaderless = (TENTATIVE,)
    generation = topic.begin(Epoch(1), NOTHING)
    assert topic.publish(generation, of_fork(generation, ("a", 10))) == 1
    topic.end(generation)
    settle(topic, 20)
    assert (world.undone, sorted(world.done)) == ([b"a"], [("1.1", 0), ("1.1", 1)])


def test_stable_results_that_were_read_before_an_error_are_read_again() -> None:
    """None is passed over."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10), ("c", 10))
    for name in "abc":
        world.stable(name, 10)
    world.kafka.stalled = STABLE
    with pytest.raises(NotNowError, match="nothing new"):
        settle(topic, 20)
    world.kafka.stalled = None
    settle(topic, 20)
    assert (topic.counts.confirmed, world.undone, topic.is_settled) == (3, [], True)


def test_an_undo_that_was_not_delivered_is_written_after_it_was_resumed() -> None:
    """The topic has the state."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10), ("b", 10))
    world.stable("a", 10)
    world.kafka.lose_after = world.kafka.sent
    with pytest.raises(RetryError, match="not delivered"):
        settle(topic, 20)
    with pytest.raises(BrokenInvariantError, match="before what is there was read"):
        topic.publish(Generation(Epoch(1), 1), of_fork(Generation(Epoch(1), 1), ("c", 10)))
    world.kafka.lose_after = None
    topic.resume(world.ends)
    settle(topic, 20)
    assert (world.undone, sorted(world.done)) == ([b"b"], [("1.1", 0), ("1.1", 1)])


def test_a_fork_does_not_go_on_after_its_topic_was_read_again() -> None:
    """Its results count as those of one that has ended: it has to begin again."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    topic.publish(generation, of_fork(generation, ("a", 10), ("b", 30)))
    world.kafka.lose_after = world.kafka.sent
    with pytest.raises(RetryError, match="not delivered"):
        settle(topic, 20)
    world.kafka.lose_after = None
    topic.resume(world.ends)
    with pytest.raises(RetryError, match=r"generation 1\.1 has ended"):
        topic.publish(generation, of_fork(generation, ("c", 30)))
    assert str(topic.begin(Epoch(1), NOTHING)) == "1.2"


def test_results_that_were_not_delivered_are_settled_as_others() -> None:
    """Nobody knows which of them arrived."""
    world = World()
    topic = world.opened()
    generation = topic.begin(Epoch(1), NOTHING)
    world.kafka.lose_after = 1
    with pytest.raises(RetryError):
        topic.publish(generation, of_fork(generation, ("a", 10), ("b", 10)))
    world.kafka.lose_after = None
    topic.end(generation)
    settle(topic, 20)
    assert set(world.undone) == {b"a", b"b"}
    assert topic.is_settled


@pytest.mark.parametrize("leaderless", [STABLE, TENTATIVE])
def test_nothing_is_taken_over_while_a_topic_does_not_answer(leaderless: str) -> None:
    """An answer without it would look like an empty topic."""
    world = World()
    published(world.opened(), ("a", 10))
    topic = TentativeTopic(Places(STABLE, world.id, TENTATIVE), world.kafka, world.kafka)
    described = world.kafka.describe

    def at_first(topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        found = described(topics)
        world.kafka.leaderless = (leaderless,)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.kafka, "describe", at_first)
        if leaderless == TENTATIVE:
            with pytest.raises(NotNowError):
                topic.resume(NOTHING)
    world.kafka.leaderless = ()
    topic.resume(NOTHING)
    settle(topic, 20)
    assert world.undone == [b"a"]


@pytest.mark.parametrize("point", range(16))
def test_what_a_killed_process_has_left_is_settled_by_the_next_one(point: int) -> None:
    """At each point: each id once, undos before done marks, and done marks in each partition."""
    world = World()
    world.kafka.kill_after = point
    try:
        life(world)
        killed = False
    except KilledError:
        killed = True
    assert killed == (point < 13), "4 and 3 results, 2 undos, 2 done marks for each of 2 forks"
    world.kafka.kill_after = None
    stable = {bytes(one.key or b"") for one in world.kafka.topics[STABLE].partitions[0].log}
    stable |= {bytes(one.key or b"") for one in world.kafka.topics[STABLE].partitions[1].log}
    again = world.opened(world.ends)
    settle(again, 40)
    settle(again, 40)
    assert again.is_settled
    seen = {one.id for one in world.written if isinstance(one, TentativeResult)}
    assert set(Counter(world.undone).values()) <= {1}
    assert set(world.undone) == seen - stable
    generations = {str(one.generation) for one in world.written}
    assert {one for one in generations for _ in range(PARTITIONS)} == {of for of, _ in world.done}
    for partition in range(PARTITIONS):
        over: set[Generation] = set()
        for one in (one for one in world.written if one.partition == partition):
            if isinstance(one, DoneMark):
                over.add(one.generation)
            else:
                assert one.generation not in over
        assert {str(one) for one in over} == generations


def test_a_process_that_was_fenced_disturbs_nothing() -> None:
    """Its results are older ones; readers undo those that nobody knows of."""
    world = World()
    old = world.opened()
    before = old.begin(Epoch(1), NOTHING)
    old.publish(before, of_fork(before, ("a", 10)))
    new = world.opened()
    newer = new.begin(Epoch(2), NOTHING)
    new.publish(newer, of_fork(newer, ("a", 10, "new"), ("b", 10)))
    old.publish(before, of_fork(before, ("a", 10, "old"), ("z", 10)))
    new.end(newer)
    world.stable("a", 10, "new")
    settle(new, 20)
    assert new.counts == Counts(2, confirmed=1, undone=1)
    assert {of for of, _ in world.done} == {"1.1", "2.1"}
    later = world.opened()
    settle(later, 20)
    assert (world.undone, later.is_settled) == ([b"b"], True)


def test_a_number_is_used_once_although_the_topic_was_made_again() -> None:
    """A reader has seen the end of that generation, and would take nothing more of it."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10))
    topic.close()
    del world.kafka.topics[TENTATIVE]
    create(world.kafka, TENTATIVE, partitions=PARTITIONS)
    topic.resume(world.ends)
    assert topic.is_settled
    assert str(topic.begin(Epoch(1), NOTHING)) == "1.2"


def test_a_closed_topic_can_be_opened_again() -> None:
    """Nothing is forgotten."""
    world = World()
    topic = world.opened()
    published(topic, ("a", 10))
    topic.close()
    assert not topic.is_settled
    topic.resume(world.ends)
    assert topic.counts.open_results == 1
    settle(topic, 20)
    assert world.undone == [b"a"]


def test_errors_are_those_of_medusa() -> None:
    """A lane goes on after them."""
    world = World()
    world.kafka.delete_topics((TENTATIVE,))
    with pytest.raises(MedusaError):
        world.opened()
