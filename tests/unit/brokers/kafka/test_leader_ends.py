import logging

import pytest

from brokers.kafka.leader_ends import LeaderEnds
from brokers.kafka.leaders import (
    AGAIN_S,
    REFRESH_S,
    UNSETTLED_S,
    LeaderAnswer,
    LeaderEpochs,
    TopicLeaders,
)
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, TopicName
from tests.unit.brokers.kafka.asked import NO_ANSWER, Brokers
from tests.unit.deploy.twins import TwinClock

A, B = TopicName("a"), TopicName("b")
WITHIN_S = 0.5


@pytest.fixture
def brokers() -> Brokers:
    """Two brokers; each leads a partition of topic a, and broker 1 leads topic b."""
    topics = {A: TopicLeaders("id-a", {0: 1, 1: 2}), B: TopicLeaders("id-b", {0: 1})}
    return Brokers(TwinClock(), topics)


def reader(brokers: Brokers) -> LeaderEnds:
    """A reader of their ends."""
    return LeaderEnds(brokers.connect, brokers.clock, LeaderEpochs())


def test_each_leader_is_asked_for_its_partitions(brokers: Brokers) -> None:
    """Of existing topics; in the first read already, which waits for metadata."""
    ends = reader(brokers)
    brokers.clock.sleep(3)
    answer = ends.read((A, B, TopicName("gone")), WITHIN_S)
    assert answer.stable == answer.written == {A: {0: 5, 1: 5}, B: {0: 5}}
    assert (answer.asked_at_s, answer.late, answer.missing) == (3, {}, frozenset())
    groups = [request.group for request in brokers.asked]
    assert [group.places for group in groups if group] == [((A, 0), (B, 0)), ((A, 1),)]


def test_unchanged_ends_are_the_same_object(brokers: Brokers) -> None:
    """Another object after a change."""
    ends = reader(brokers)
    first, second = ends.read((A,), WITHIN_S), ends.read((A,), WITHIN_S)
    assert first.stable is second.stable
    assert first.written is second.written
    brokers.offset = Offset(6)
    assert ends.read((A,), WITHIN_S).stable == {A: {0: 6, 1: 6}}
    assert first.stable == {A: {0: 5, 1: 5}}


def test_a_leader_that_does_not_answer_takes_the_time_of_one_read(brokers: Brokers) -> None:
    """Its partitions are missing, and no second request is sent to it."""
    ends = reader(brokers)
    brokers.hanging.add(2)
    for _ in range(3):
        answer = ends.read((A, B), WITHIN_S)
        assert answer.stable == {A: {0: 5}, B: {0: 5}}
        assert answer.missing == {(A, 1)}
    assert brokers.clock.passed_s == WITHIN_S
    assert [request.group.leader for request in brokers.asked if request.group] == [1, 2, 1, 1]


def test_its_answer_comes_with_a_later_read(brokers: Brokers) -> None:
    """Once, as a lower bound; and it is asked again."""
    ends = reader(brokers)
    brokers.hanging.add(2)
    ends.read((A,), WITHIN_S)
    brokers.answer_now(2)
    brokers.offset = Offset(8)
    answer = ends.read((A,), WITHIN_S)
    assert answer.late == {A: {1: 5}}
    assert answer.stable == {A: {0: 8, 1: 8}}
    assert answer.missing == frozenset()
    assert ends.read((A,), WITHIN_S).late == {}


def test_late_answers_are_only_of_topics_that_are_read(brokers: Brokers) -> None:
    """And of topics that were not deleted and made again."""
    ends = reader(brokers)
    brokers.hanging.add(1)
    ends.read((A, B), WITHIN_S)
    brokers.clock.sleep(REFRESH_S)
    brokers.topics = {A: TopicLeaders("another id", {0: 1})}
    ends.read((A, B), WITHIN_S)
    brokers.answer_now(1)
    assert ends.read((A, B), WITHIN_S).late == {}
    brokers.hanging.add(1)
    ends.read((A,), WITHIN_S)
    brokers.answer_now(1)
    assert ends.read((B,), WITHIN_S).late == {}


def test_a_leader_that_gave_no_answer_is_asked_again_without_a_wait(brokers: Brokers) -> None:
    """The driver has given up: the leader is described and asked again, and not waited for."""
    ends = reader(brokers)
    brokers.hanging.add(2)
    ends.read((A,), WITHIN_S)
    brokers.asked[-1].answer = NO_ANSWER
    assert ends.read((A,), WITHIN_S).late == {}
    passed_s = brokers.clock.passed_s
    brokers.clock.sleep(AGAIN_S)
    for _ in range(3):
        assert ends.read((A,), WITHIN_S).missing == {(A, 1)}
    assert brokers.clock.passed_s == passed_s + AGAIN_S
    assert len([one for one in brokers.asked if one.group and one.group.leader == 2]) == 2


def test_a_leader_that_has_moved_is_not_asked_before_it_is_described(brokers: Brokers) -> None:
    """Its partitions are missing until then."""
    ends = reader(brokers)
    ends.read((A,), WITHIN_S)
    brokers.answers[2] = LeaderAnswer({}, {}, answered=True, moved=True)
    assert ends.read((A,), WITHIN_S).missing == {(A, 1)}
    brokers.topics = {A: TopicLeaders("id-a", {0: 1, 1: 1})}
    count = len(brokers.asked)
    assert ends.read((A,), WITHIN_S).missing == {(A, 1)}
    assert len(brokers.asked) == count + 1
    brokers.clock.sleep(AGAIN_S)
    ends.read((A,), WITHIN_S)
    assert ends.read((A,), WITHIN_S).stable == {A: {0: 5, 1: 5}}


def test_metadata_that_do_not_arrive_delay_one_read(brokers: Brokers) -> None:
    """Only the first one, which has nothing else to wait for."""
    brokers.topics = None
    ends = reader(brokers)
    for _ in range(3):
        answer = ends.read((A,), WITHIN_S)
        assert (answer.stable, answer.missing) == ({}, frozenset())
    assert brokers.clock.passed_s == WITHIN_S


def test_old_metadata_are_used_while_new_ones_do_not_arrive(brokers: Brokers) -> None:
    """A new topic is absent meanwhile; nothing waits."""
    ends = reader(brokers)
    ends.read((A,), WITHIN_S)
    brokers.topics = None
    brokers.clock.sleep(REFRESH_S)
    passed_s = brokers.clock.passed_s
    assert ends.read((A, B), WITHIN_S).stable == {A: {0: 5, 1: 5}}
    assert brokers.clock.passed_s == passed_s
    assert len(brokers.described) == 2


def test_partitions_without_a_leader_are_missing(brokers: Brokers) -> None:
    """Until they have one; their topic is described every second."""
    brokers.topics = {A: TopicLeaders("id-a", {0: 1, 1: None})}
    ends = reader(brokers)
    answer = ends.read((A,), WITHIN_S)
    assert (answer.stable, answer.missing) == ({A: {0: 5}}, frozenset({(A, 1)}))
    brokers.topics = {A: TopicLeaders("id-a", {0: 1, 1: 2})}
    brokers.clock.sleep(UNSETTLED_S)
    ends.read((A,), WITHIN_S)
    assert ends.read((A,), WITHIN_S).missing == frozenset()


def test_an_error_is_logged_once(brokers: Brokers, caplog: pytest.LogCaptureFixture) -> None:
    """And the partition is missing in every read."""
    ends = reader(brokers)
    brokers.answers[2] = LeaderAnswer({}, {}, answered=True, problem="not allowed")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert ends.read((A,), WITHIN_S).missing == {(A, 1)}
    assert [record.args for record in caplog.records] == [("not allowed",)]


def test_a_closed_reader_cannot_be_read(brokers: Brokers) -> None:
    """A second close does nothing."""
    ends = reader(brokers)
    ends.close()
    ends.close()
    assert brokers.connected[0].closed
    with pytest.raises(BrokenInvariantError, match="closed"):
        ends.read((A,), WITHIN_S)


def test_a_leader_of_an_earlier_epoch_is_not_believed(brokers: Brokers) -> None:
    """Its partitions are missing, and the leaders are asked for again."""
    ends = reader(brokers)
    place = (A, 1)

    def answer(end: int, epoch: int) -> LeaderAnswer:
        offsets = {place: Offset(end)}
        return LeaderAnswer(offsets, offsets, answered=True, epochs={place: epoch})

    brokers.answers[2] = answer(9, 3)
    assert ends.read((A,), WITHIN_S).stable[A][1] == 9
    brokers.answers[2] = answer(7, 2)
    described = len(brokers.described)
    found = ends.read((A,), WITHIN_S)
    assert found.stable == {A: {0: 5}}
    assert found.missing == {place}
    brokers.clock.sleep(AGAIN_S)
    ends.read((A,), WITHIN_S)
    assert len(brokers.described) == described + 1


def test_a_reader_that_begins_learns_of_others_who_leads(brokers: Brokers) -> None:
    """So a start is not misled by a leader that was."""
    epochs, offsets = LeaderEpochs(), {(A, 1): Offset(9)}
    for epoch, expected in ((3, {0: 5, 1: 9}), (2, {0: 5})):
        ends = LeaderEnds(brokers.connect, brokers.clock, epochs)
        known = dict.fromkeys(offsets, epoch)
        brokers.answers[2] = LeaderAnswer(offsets, offsets, answered=True, epochs=known)
        assert ends.read((A,), WITHIN_S).stable == {A: expected}
