"""Topics that are kept by need, before a deploy: who may read them, and what is gone."""

from dataclasses import replace

import pytest

from pipeline.deploy.kept_by_need import (
    Removed,
    by_need,
    foreign_readers,
    lost_topics,
    need_warnings,
)
from pipeline.deploy.others import Others, written_topics
from pipeline.ids import Incarnation, NetworkName, Offset, ParticipantId, StreamName, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.planner.inputs import ChangedInput
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.state import OnChange
from tests.unit.planner.networks import OWNER, aggregated, column, external, filtered, network
from tests.unit.spark.run.test_rebuild import MARKER

CARS = external("cars", column("car"))
COUNTED = aggregated("counted", CARS, {"car": "`car`"}, {"n": ("count", "`car`")})
MANY = filtered("many", COUNTED, "`n` > 1")
SUMS = aggregated("sums", COUNTED, {}, {"all": ("sum", "`n`")})
BOTH = replace(network((CARS,), (COUNTED, MANY, SUMS), ("many", "sums")), trims_internal=True)
PLAN = plan(BOTH, OWNER)
TOPIC = TopicName("local.net.counted")
READERS = {one.name: one for one in PLAN.fragments if one.name != "counted"}
GONE = f"topic {TOPIC} is kept by need, and records that no fragment needed are gone"
THEM = ParticipantId("them")


def reading(owner: ParticipantId) -> Plan:
    """The plan of another network that reads the topic."""
    stream = replace(external("theirs", column("n")), topic=TOPIC)
    made = network((stream,), (filtered("seen", stream, "`n` > 0"),))
    return plan(replace(made, name=NetworkName("other")), owner)


@pytest.mark.parametrize(("owner", "count"), [(OWNER, 0), (THEM, 1)])
def test_only_fragments_of_the_participant_may_read_it(owner: ParticipantId, count: int) -> None:
    """What those of others need is not known to its writer."""
    made = reading(owner)
    others = Others(taken=dict(written_topics(PLAN)))
    assert TOPIC in by_need(made, others)
    found = [one.message for one in foreign_readers(made, others)]
    text = (
        f"stream theirs reads topic {TOPIC}, which is the output of fragment counted of network "
        "net of participant local: only what fragments of participant local need is kept there"
    )
    assert found == [text] * count


def test_a_topic_that_others_read_is_not_kept_by_need() -> None:
    """They were there first."""
    other = replace(PLAN.network, participant=THEM)
    (found,) = foreign_readers(PLAN, Others(read={TOPIC: other}))
    assert found.message == (
        f"topic {TOPIC} is read by network net of participant them: only what fragments of "
        "participant local need is kept there"
    )
    assert list(foreign_readers(PLAN, Others(read={TopicName("cars-topic"): other}))) == []


def test_a_reader_that_begins_is_told_what_is_left() -> None:
    """Also one that has run, and begins to read the topic."""
    begins = ChangedInput(StreamName("counted"), TOPIC, True, ())
    removed = Removed(frozenset({TOPIC}))
    known = dict.fromkeys(READERS, MARKER)
    assert list(need_warnings(PLAN, removed, {}, {}, {})) == [
        f"{GONE}: {name} begins at what is left" for name in READERS
    ]
    sums = next(name for name in READERS if name == "sums")
    assert list(need_warnings(PLAN, removed, known, {sums: (begins,)}, {})) == [
        f"{GONE}: sums begins at what is left"
    ]
    assert list(need_warnings(PLAN, removed, known, {}, {})) == []
    assert list(need_warnings(PLAN, Removed(), {}, {}, {})) == []


def test_a_chosen_rebuild_and_a_fragment_that_comes_back_are_told() -> None:
    """The latter only if it needs something that is gone, and nothing was chosen."""
    known = dict.fromkeys(READERS, MARKER)
    (sums,) = (name for name in READERS if name == "sums")
    removed = Removed(frozenset({TOPIC}), {sums: (TOPIC,)})
    chosen = {sums: (OnChange.REBUILD, Incarnation("one"))}
    assert list(need_warnings(PLAN, removed, known, {}, chosen)) == [
        f"{GONE}: the state of sums is built from what is left"
    ]
    text = (
        f"{GONE}, also some that sums was to go on from: it starts only with `--state sums=empty`, "
        "which goes on with what is left"
    )
    assert list(need_warnings(PLAN, removed, known, {}, {})) == [text]
    empty = {sums: (OnChange.EMPTY, Incarnation("one"))}
    assert list(need_warnings(PLAN, removed, known, {}, empty)) == []


@pytest.mark.parametrize(
    ("fragment", "needed", "end", "is_lost"),
    [
        ("sums", 4, 9, True),
        ("sums", 5, 9, False),
        ("many", 4, 9, False),
        ("many", 4, 4, True),
    ],
)
def test_a_state_needs_more_than_positions(
    fragment: str, needed: int, end: int, *, is_lost: bool
) -> None:
    """A fragment without one needs only what it has not read."""
    (one,) = (found for found in PLAN.fragments if found.name == fragment)
    at = InputPartition(StreamName("counted"), TOPIC, 0)
    marker = replace(MARKER, needed={at: Offset(needed)}, end={at: Offset(end)})
    starts = {TOPIC: {0: Offset(5)}}
    found = lost_topics(one, marker, frozenset({TOPIC}), starts)
    assert found == ((TOPIC,) if is_lost else ())
    assert lost_topics(one, marker, frozenset(), starts) == ()
