from dataclasses import replace
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.memory_kafka.writers import MemoryTransactions
from brokers.records import KafkaRecord
from pipeline.clock import Deadline
from pipeline.dead_letters import send as sending
from pipeline.dead_letters.letter import Letter
from pipeline.dead_letters.redrive_rules import (
    Rules,
    Tally,
    kept_from,
    read_partitions,
    select_unsent,
    sent_letters,
    source_paths,
)
from pipeline.dead_letters.send import send
from pipeline.errors import UnavailableError
from pipeline.ids import Millis, Offset, SchemaId, SourceId, StreamName, TopicId, TopicName
from pipeline.lanes.dead_letters import REDRIVEN_FROM
from pipeline.lanes.source_ids import named_sources
from pipeline.markers.positions import InputPartition
from pipeline.system_clock import SystemClock
from tests.unit.dead_letters.support import NAMES, NOW, letter
from tests.unit.kafka import records, with_topics
from tests.unit.spark.run.test_rebuild import MARKER
from tests.unit.spark.support import fragment

SOURCE = SourceId("id of car-sightings/0")
PATHS = frozenset({(SOURCE, ""), (SOURCE, "only")})
RULES = Rules(PATHS, None, lambda schema: schema == SchemaId(7))
HOUR = 3_600_000


class Topic:
    """A redrive topic; its writers fail after `calls_left` calls."""

    def __init__(self) -> None:
        self.kafka = with_topics([NAMES.redrive], partitions=4)
        self.calls_left = 1_000_000

    def called(self) -> None:
        """Count down."""
        self.calls_left -= 1
        if self.calls_left < 0:
            raise UnavailableError("killed")

    @property
    def writer(self) -> "Writer":
        """A new one, which has fenced all others."""
        started = Writer(self)
        started.start(Deadline.after(SystemClock(), 10, "starting"))
        return started

    @property
    def visible(self) -> list[KafkaRecord]:
        """The committed copies."""
        return records(self.kafka, NAMES.redrive)

    def run(self, letters: list[Letter], limit: int | None = None) -> Tally:
        """One run of a redrive."""
        tally = Tally()
        sent = sent_letters(self.visible)
        todo = select_unsent(letters, sent, RULES, limit, tally)
        send(todo, NAMES.redrive, range(4), self.writer, SystemClock())
        return tally

    @property
    def numbers(self) -> list[tuple[int, Offset]]:
        """Numbers of the dead letters that were sent."""
        return [next(iter(sent_letters([record])))[:2] for record in self.visible]


class Writer(MemoryTransactions):
    """A writer that may fail at any call."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(topic.kafka, NAMES.redriver)
        self._topic = topic

    def begin(self) -> None:
        """Open a transaction."""
        self._topic.called()
        super().begin()

    def send(self, topic: TopicName, key: bytes | None, value: bytes | None, **more: Any) -> None:
        """Add a record."""
        self._topic.called()
        super().send(topic, key, value, **more)

    def commit(self, deadline: Deadline) -> None:
        """Commit the transaction."""
        self._topic.called()
        super().commit(deadline)


@given(
    count=st.integers(0, 12),
    size=st.integers(1, 4),
    deaths=st.lists(st.integers(0, 12), max_size=6),
    limits=st.lists(st.integers(1, 4), max_size=3),
)
def test_every_letter_is_sent_once_however_often_runs_are_killed(
    count: int, size: int, deaths: list[int], limits: list[int]
) -> None:
    """A killed run leaves whole transactions; the next ones send what is missing."""
    letters = [letter(offset) for offset in range(count)]
    topic = Topic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending, "RECORDS_PER_TRANSACTION", size)
        for calls in deaths:
            topic.calls_left = calls
            try:
                topic.run(letters)
            except UnavailableError:
                continue
        topic.calls_left = 1_000_000
        for limit in limits:
            topic.run(letters, limit)
        topic.run(letters)
        assert topic.run(letters).already == count
    assert sorted(topic.numbers) == [one.number for one in letters]


def test_the_copy_is_the_original_with_headers_that_route_it() -> None:
    """Key, value, time, headers and partition are the original's; our headers follow."""
    original = (("a", b"1"), ("a", None))
    one = letter(5, original, port="only", attempt=2, partition=6, appended=Millis(NOW + HOUR))
    topic = Topic()
    topic.run([one])
    (copy,) = topic.visible
    assert (copy.key, copy.value, copy.timestamp_ms, copy.partition) == (b"key", b"value", NOW, 2)
    assert copy.headers == (
        *original,
        ("medusa.error.format", b"1"),
        ("medusa.error.source", b"id of car-sightings/0"),
        ("medusa.error.port", b"only"),
        ("medusa.error.attempt", b"2"),
        ("medusa.redriven.from", b"0/5"),
        ("medusa.redriven.origin", b"car-sightings/6/105"),
    )


def test_a_letter_of_a_copy_names_itself_and_the_first_origin() -> None:
    """The last header counts, not that of the first copy."""
    topic = Topic()
    topic.run([letter(5)])
    again = letter(8, topic.visible[0].headers, topic=NAMES.redrive, attempt=2)
    topic.run([letter(5), again])
    assert topic.numbers == [(0, 5), (0, 8)]
    assert topic.visible[1].headers[-1] == ("medusa.redriven.origin", b"car-sightings/1/105")
    assert sum(name == REDRIVEN_FROM for name, _ in topic.visible[1].headers) == 1


@pytest.mark.parametrize(
    ("one", "obstacle"),
    [
        (letter(), ""),
        (letter(reason="late"), "late"),
        (letter(reason="partly_late"), "partly late"),
        (letter(topic=None, partition=None, offset=None), "failed result"),
        (letter(input="renamed"), ""),
        (letter(source=SourceId("other/0")), "does not read"),
        (letter(port="left"), "does not read"),
        (letter(reason="unknown"), "no fragment wrote it"),
        (letter(reason="schema_not_found", schema=SchemaId(7)), ""),
        (letter(reason="schema_not_found", schema=SchemaId(8)), "still has no such schema"),
        (letter(reason="schema_not_found"), "still has no such schema"),
    ],
)
def test_what_cannot_be_taken_again_is_not_sent(one: Letter, obstacle: str) -> None:
    """The obstacle is the reason in words."""
    found = RULES.obstacle(one)
    assert obstacle in found
    assert bool(found) is bool(obstacle)


def test_a_letter_that_names_a_record_is_sent_once_that_was_found() -> None:
    """And if the settings that decide the match are unchanged."""
    facts = dict.fromkeys(("topic", "partition", "offset"))
    one = letter(**facts, row="car-sightings/3/7", held_by="1:a", port="only")
    rules = replace(RULES, decided="1:a")
    assert rules.needs_original(one)
    assert "not in its topic any more" in rules.obstacle(one)
    original = KafkaRecord(TopicName("car-sightings"), 3, Offset(7), Millis(9), b"k", b"v")
    found = replace(one, original=original)
    assert rules.obstacle(found) == ""
    assert "retention" in replace(rules, kept_from_ms=Millis(10)).obstacle(found)
    for other in (RULES, replace(rules, decided="1:b"), replace(rules, paths=frozenset())):
        assert not other.needs_original(one)
        assert other.obstacle(found)
    assert not rules.needs_original(letter())
    assert not rules.needs_original(letter(**facts))
    topic = Topic()
    send([found], NAMES.redrive, range(4), topic.writer, SystemClock())
    (copy,) = topic.visible
    assert (copy.key, copy.value, copy.timestamp_ms, copy.partition) == (b"k", b"v", 9, 3)
    assert copy.headers[-1] == ("medusa.error.held_by", b"1:a")


def test_what_retention_is_about_to_delete_is_not_sent() -> None:
    """A deleted copy would be sent twice, or never be read."""
    assert kept_from(-1, NOW) is None
    kept_from_ms = kept_from(24 * HOUR, NOW)
    assert kept_from_ms == NOW - 23 * HOUR
    assert kept_from(HOUR, NOW) == NOW - HOUR + HOUR // 10
    rules = Rules(PATHS, kept_from_ms, lambda _: True)
    assert "retention" in rules.obstacle(letter(time=Millis(NOW - 23 * HOUR - 1), appended=NOW))
    assert rules.obstacle(letter(time=Millis(NOW - 23 * HOUR), appended=Millis(0))) == ""


def test_what_is_too_large_for_the_topic_is_not_sent() -> None:
    """It would fail its whole transaction, in each run again."""
    rules = replace(RULES, most_bytes=10_000)
    small, large = (
        replace(letter(), record=replace(letter().record, value=b"v" * size))
        for size in (9_000, 10_000)
    )
    assert rules.obstacle(small) == ""
    assert "max.message.bytes" in rules.obstacle(large)
    headers = letter(0, (("h", b"v" * 10_000),))
    assert "max.message.bytes" in rules.obstacle(headers)
    assert RULES.obstacle(headers) == ""


def test_a_letter_of_a_row_names_a_record_of_its_input_or_of_the_redrive_topic() -> None:
    """A dead letter of another program may name any record; it is refused."""
    rules = replace(RULES, redrive=NAMES.redrive, decided="1:a")
    facts = dict.fromkeys(("topic", "partition", "offset"))
    own, again, other = (
        letter(**facts, row=f"{topic}/0/1", topic_id=TopicId(topic_id), held_by="1:a")
        for topic, topic_id in (
            ("car-sightings", "id of car-sightings"),
            (NAMES.redrive, "#9"),
            ("limits", "#7"),
        )
    )
    assert rules.needs_original(own)
    assert rules.needs_original(again)
    assert not rules.needs_original(other)
    assert "not that of their input" in rules.obstacle(other)


def test_a_tally_counts_outcomes() -> None:
    """Sent, sent before, refused by reason; dead letters beyond the limit are not counted."""
    letters = [letter(0), letter(1, reason="late"), letter(2, reason="late"), letter(3), letter(4)]
    tally = Tally()
    selected = select_unsent(letters, frozenset({letter(0).identity}), RULES, 1, tally)
    assert [one.number[1] for one in selected] == [3]
    assert (tally.sent, tally.already, list(tally.refusals.values())) == (1, 1, [2])


def read_by(name: str) -> frozenset[tuple[SourceId, str]]:
    """The source paths of a fragment of the toll network."""
    planned = fragment(name)
    return source_paths(planned, named_sources(planned))


def test_a_fragment_reads_its_inputs_at_the_ports_of_its_stateful_box() -> None:
    """As the lane routes redriven records."""
    assert read_by("tow_dispatch") == {("sightings-topic/0", at) for at in ("", "left", "right")}
    assert ("sightings-topic/0", "only") in read_by("tolls")
    assert source_paths(fragment("tow_dispatch"), ()) == frozenset()


def test_a_side_that_reads_another_input_by_now_takes_no_letter_of_the_first() -> None:
    """The lane routes by source and port; it would ignore other records silently."""
    assert read_by("toll_notifications") == {
        ("local.net.tolls/0", ""),
        ("local.net.tolls/0", "right"),
        ("sightings-topic/0", ""),
        ("sightings-topic/0", "left"),
    }


def test_a_letter_of_a_recreated_topic_has_another_identity() -> None:
    """Its number may equal a sent one; its place does not."""
    topic = Topic()
    topic.run([letter(5)])
    again = letter(5, offset=Offset(777))
    assert topic.run([again]).sent == 1
    assert topic.run([again]).already == 1


def test_headers_without_an_identity_are_ignored() -> None:
    """Other programs may write into the topic."""
    records = [
        KafkaRecord(NAMES.redrive, 0, Offset(0), NOW, None, None, ((REDRIVEN_FROM, value),))
        for value in (None, b"", b"1", b"a/1", b"1/", b"2/3")
    ]
    assert sent_letters(records) == {(2, 3, None)}


def test_letters_are_sent_only_to_partitions_that_the_lane_reads() -> None:
    """A partition added since would be read only after the next start."""
    places = {
        InputPartition(StreamName("cars"), name, partition): Offset(0)
        for name, partition in ((NAMES.redrive, 0), (NAMES.redrive, 2), (TopicName("other"), 3))
    }
    marker = replace(MARKER, end=places)
    assert read_partitions(marker, NAMES.redrive, 4) == [0, 2]
    assert list(read_partitions(None, NAMES.redrive, 4)) == [0, 1, 2, 3]
    topic = Topic()
    letters = [letter(offset, partition=offset) for offset in range(4)]
    send(letters, NAMES.redrive, [0, 2], topic.writer, SystemClock())
    copies = zip(topic.numbers, topic.visible, strict=True)
    assert [record.partition for _, record in sorted(copies, key=itemgetter(0))] == [0, 2, 0, 2]


def test_the_tally_counts_what_would_be_late_of_what_is_sent() -> None:
    """Not of dead letters that were sent before, are refused, or beyond the limit."""
    letters = [letter(n) for n in range(5)]
    late = {0: True, 1: None, 2: False, 3: True, 4: True}
    tally = Tally()
    sent = frozenset({letters[0].identity})
    kept = select_unsent(letters, sent, RULES, 3, tally, lambda one: late[one.number[1]])
    assert [one.number[1] for one in kept] == [1, 2, 3]
    assert (tally.sent, tally.late, tally.untimed, tally.already) == (3, 1, 1, 1)
