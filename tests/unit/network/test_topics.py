"""Topic names, and what internal topics keep."""

from collections.abc import Callable

import pytest

from pipeline.ids import FragmentId, FragmentName, NetworkId, NetworkName, ParticipantId, TopicName
from pipeline.names import (
    INTERNAL_SUFFIXES,
    FragmentNames,
    boundaries_topic,
    connectors_topic,
    events_topic,
    heartbeats_topic,
    tentative_topic,
)
from pipeline.network.fields import Report, Text
from pipeline.network.model import Network
from pipeline.network.topics import check_collisions, check_name

NETWORK = NetworkId(ParticipantId("us"), NetworkName("net"))


def collisions(external: dict[str, str], outputs: dict[str, str]) -> list[str]:
    """The problems of some choices."""
    report = Report("f.yaml")
    check_collisions(
        {name: Text(topic, 1) for name, topic in external.items()},
        {name: Text(topic, 2) for name, topic in outputs.items()},
        report,
    )
    return [problem.message for problem in report.problems]


def test_different_topics_do_not_collide() -> None:
    """The usual case."""
    assert collisions({"s": "cars"}, {"b": "tolls"}) == []


def test_two_streams_cannot_share_a_topic() -> None:
    """The problem of the second one names the first."""
    assert collisions({"s": "cars", "t": "cars"}, {}) == [
        "topic cars of stream t is already the topic of stream s"
    ]
    assert collisions({"s": "cars"}, {"b": "cars"}) == [
        "topic cars of output b is already the topic of stream s"
    ]


def test_dots_and_underscores_are_equal_in_kafka() -> None:
    """Kafka refuses to create the second of two such topics."""
    assert collisions({"s": "a.b", "t": "a_b"}, {}) == [
        "topic a_b of stream t is already the topic of stream s"
    ]


def test_topics_derived_from_a_chosen_one_are_taken() -> None:
    """Boundaries; the planner checks topics that are named after the participant."""
    assert collisions({"s": "out.boundaries"}, {"a": "out"}) == [
        "topic out.boundaries of stream s is already the boundaries of box a"
    ]


def test_names_that_kafka_refuses() -> None:
    """Letters, digits, dot, underscore, hyphen; at most 249, with room for suffixes."""
    report = Report("f.yaml")
    good = ["a", "A.b_c-1", "x" * 249]
    bad = ["", ".", "..", "a b", "ä", "x" * 250]
    assert all(check_name(Text(name, 1), "s", report, derived=False) for name in good)
    assert not any(check_name(Text(name, 1), "s", report, derived=False) for name in bad)
    assert not check_name(Text("x" * 240, 1), "s", report, derived=True)
    assert len(report.problems) == len(bad) + 1


@pytest.mark.parametrize("suffix", INTERNAL_SUFFIXES)
def test_an_output_cannot_have_the_name_of_an_internal_topic(suffix: str) -> None:
    """It might be another network's; an external stream may have such a name."""
    report = Report("f.yaml")
    name = Text(f"other.box{suffix}", 7)
    assert not check_name(name, "output b", report, derived=True)
    (problem,) = report.problems
    assert problem.line == 7
    assert "output b" in problem.message
    assert f"other.box{suffix}" in problem.message
    assert all(known in problem.hint for known in INTERNAL_SUFFIXES)
    assert check_name(name, "stream s", report, derived=False)


def test_every_internal_topic_has_one_of_the_suffixes() -> None:
    """So that no name of one can be chosen."""
    names = FragmentNames(FragmentId(NETWORK, FragmentName("box")))
    kept = {
        names.dead_letters,
        names.redrive,
        names.markers,
        boundaries_topic(TopicName("out")),
        tentative_topic(TopicName("out")),
        connectors_topic(NETWORK.participant),
        events_topic(NETWORK.participant),
        heartbeats_topic(NETWORK.participant),
    }
    assert {f".{name.rpartition('.')[2]}" for name in kept} == set(INTERNAL_SUFFIXES)


INTERNAL = (
    "network: n\nstreams: {s: {topic: t, schema: sighting.avsc, event_time: seen_at}}\n"
    "boxes: {a: {filter: s, where: speed > 0}}\n"
)


def test_internal_topics_may_be_kept_by_need(load_text: Callable[..., Network]) -> None:
    """Not by default."""
    assert not load_text(INTERNAL).trims_internal
    assert load_text(INTERNAL + "internal_retention: needed\n").trims_internal


def test_nothing_else_can_be_written_there(problems_of: Callable[..., list[str]]) -> None:
    """A time would be that of the network's retention."""
    (found,) = problems_of(INTERNAL + "internal_retention: 7d\n")
    assert "internal_retention of the document cannot be '7d'" in found
