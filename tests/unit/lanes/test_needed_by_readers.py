"""What the readers of a topic need: never less than a lane, a standby or a rebuild reads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import (
    FragmentId,
    FragmentName,
    Incarnation,
    NetworkLife,
    NetworkVersion,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.lanes.needed_by_readers import Need, Reader, needed, removable
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import InputPartition, Positions
from tests.unit.catalog.support import TOLLS
from tests.unit.lanes.marked import marked
from tests.unit.spark.run.test_rebuild import MARKER

TOPIC, OTHER = TopicName("local.tolls.moving"), TopicName("other")
ID = f"id of {TOPIC}"
DEPLOY = DeployId(NetworkLife("life"), NetworkVersion(3))
ONE = Incarnation("one")
PARTITIONS = 3


def at(partition: int, stream: str = "moving", topic: TopicName = TOPIC) -> InputPartition:
    """A partition as a stream of a reader."""
    return InputPartition(StreamName(stream), topic, partition)


def marker(start: Positions, end: Positions, rebuild: Positions) -> CommitMarker:
    """The last marker of a reader that runs what is deployed."""
    return replace(
        MARKER, start=start, end=end, needed=rebuild, sources=marked(end), decided=DEPLOY
    )


def reader(last: CommitMarker | None, name: str = "reader") -> Reader:
    """A reader."""
    return Reader(FragmentId(TOLLS, FragmentName(name)), DEPLOY, marker=last)


READ = marker({at(0): Offset(7)}, {at(0): Offset(9)}, {at(0): Offset(4)})


def test_a_rebuild_or_the_last_batch_decides_whichever_begins_first() -> None:
    """A batch that Spark had not finished is executed again, also if its windows have closed."""
    assert needed(ID, 1, [reader(READ)]) == Need({0: Offset(4)})
    closed = replace(READ, needed={at(0): Offset(9)})
    assert needed(ID, 1, [reader(closed)]) == Need({0: Offset(7)})


def test_two_streams_of_a_reader_both_count() -> None:
    """Each has positions of its own in the topic."""
    twice = marker(
        {at(0): Offset(7), at(0, "again"): Offset(2)},
        {at(0): Offset(9), at(0, "again"): Offset(3)},
        {at(0): Offset(8), at(0, "again"): Offset(3)},
    )
    assert needed(ID, 1, [reader(twice)]) == Need({0: Offset(2)})


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (reader(None), "has not run"),
        (
            replace(reader(READ), deploy=replace(DEPLOY, version=NetworkVersion(4))),
            "has not run version 4",
        ),
        (
            replace(reader(READ), deploy=replace(DEPLOY, life=NetworkLife("next"))),
            "has not run version 3",
        ),
        (replace(reader(READ), chosen=ONE), "has not carried out the choice for its state"),
        (replace(reader(READ), follower="moves to node n2"), "moves to node n2"),
        (
            reader(replace(READ, sources=marked(READ.end, ids={TOPIC: "an earlier one"}))),
            "has no positions in it",
        ),
    ],
)
def test_what_is_not_known_of_a_reader_holds_everything(one: Reader, why: str) -> None:
    """Whatever the others need."""
    found = needed(ID, 1, [reader(READ, "other"), one])
    assert found == Need({}, f"fragment tolls.reader {why}")
    assert removable({0: Offset(0)}, found, Need({0: Offset(4)})) == {}
    assert removable({0: Offset(0)}, Need({0: Offset(4)}), found) == {}


def test_a_topic_without_readers_is_held() -> None:
    """Who uses it is not known."""
    assert needed(ID, 1, []) == Need({}, "no fragment reads it")


def test_a_new_partition_is_held() -> None:
    """A reader begins it at its first record."""
    found = needed(ID, 2, [reader(READ)])
    assert removable({0: Offset(0), 1: Offset(0)}, found, found) == {0: Offset(4)}


def test_what_was_needed_a_while_ago_is_kept() -> None:
    """The first look removes nothing."""
    now, starts = Need({0: Offset(8), 1: Offset(3)}), {0: Offset(2), 1: Offset(3)}
    assert removable(starts, now, None) == {}
    assert removable(starts, now, Need({0: Offset(5), 1: Offset(3)})) == {0: Offset(5)}
    assert removable(starts, Need({0: Offset(4)}), Need({0: Offset(5)})) == {0: Offset(4)}


@dataclass(frozen=True, slots=True)
class Known:
    """A reader, and per partition the oldest offset that it may read."""

    reader: Reader
    reads_from: Mapping[int, int]


@st.composite
def knowns(draw: st.DrawFn) -> Known:
    """A reader in any condition; if its marker may not be used, it may read everything."""
    offsets = st.integers(0, 9)
    start, end, rebuild = {}, {}, {}
    reads_from = dict.fromkeys(range(PARTITIONS), 0)
    for partition in draw(st.sets(st.integers(0, PARTITIONS - 1))):
        reads_from[partition] = 9
        for stream in draw(st.sampled_from((("moving",), ("moving", "again")))):
            one = at(partition, stream)
            oldest, read, last = draw(offsets), *sorted((draw(offsets), draw(offsets)))
            start[one], end[one], rebuild[one] = Offset(read), Offset(last), Offset(oldest)
            reads_from[partition] = min(reads_from[partition], oldest, read)
    other = at(0, "other", OTHER)
    start[other] = end[other] = rebuild[other] = Offset(draw(offsets))
    found = reader(marker(start, end, rebuild))
    broken = draw(st.sampled_from(("", "", "", "deploy", "choice", "follower", "marker")))
    match broken:
        case "deploy":
            found = replace(found, deploy=replace(DEPLOY, version=NetworkVersion(9)))
        case "choice":
            found = replace(found, chosen=ONE)
        case "follower":
            found = replace(found, follower="has a follower")
        case "marker":
            found = replace(found, marker=None)
        case _:
            return Known(found, reads_from)
    return Known(found, dict.fromkeys(range(PARTITIONS), 0))


@given(
    st.lists(knowns(), max_size=3),
    st.lists(knowns(), max_size=3),
    st.lists(st.integers(0, 9), min_size=PARTITIONS, max_size=PARTITIONS),
)
def test_nothing_is_removed_that_a_reader_may_read(
    now: list[Known], before: list[Known], starts: list[int]
) -> None:
    """Neither one of now, nor one of the last look, whatever is unknown of it."""
    there = {partition: Offset(start) for partition, start in enumerate(starts)}
    looks = [needed(ID, PARTITIONS, [one.reader for one in found]) for found in (before, now)]
    for partition, until in removable(there, looks[1], looks[0]).items():
        assert until > there[partition]
        for one in (*before, *now):
            assert until <= one.reads_from[partition]


@given(st.lists(knowns(), min_size=1, max_size=3))
def test_what_no_reader_needs_is_removed(readers: list[Known]) -> None:
    """If all of it is known."""
    need = needed(ID, PARTITIONS, [one.reader for one in readers])
    oldest = {p: min(one.reads_from[p] for one in readers) for p in range(PARTITIONS)}
    if not need.held:
        until = removable(dict.fromkeys(range(PARTITIONS), Offset(0)), need, need)
        assert until == {p: offset for p, offset in oldest.items() if offset}
