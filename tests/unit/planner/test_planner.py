from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings

from pipeline.errors import DocumentError
from pipeline.ids import StreamName, TopicName
from pipeline.names import stream_of_box
from pipeline.network.boxes.traits import traits
from pipeline.network.model import Network, Output
from pipeline.planner.plan import DerivedStream, Plan
from pipeline.planner.planner import plan
from tests.profiles import examples
from tests.unit.planner.generated import networks
from tests.unit.planner.networks import (
    OWNER,
    column,
    deduplicated,
    external,
    filtered,
    network,
    python,
    tolls,
)


def _boxes(made: Plan) -> dict[str, list[str]]:
    return {f.name: [box.name for box in f.boxes] for f in made.fragments}


def test_toll_network_makes_three_fragments() -> None:
    """The two aggregates are one with a map, and filters are copied into the joins."""
    assert _boxes(plan(tolls(), OWNER)) == {
        "tolls": ["tolls_windows", "tolls"],
        "toll_notifications": ["moving", "toll_notifications"],
        "tow_dispatch": ["stopped", "tow_trucks", "tow_dispatch"],
    }


def test_two_filters_of_one_stream_read_it_once() -> None:
    """A stream is one input of a fragment, however many boxes read it."""
    dispatch = plan(tolls(), OWNER).fragments[2]
    assert [stream.name for stream in dispatch.inputs] == ["sightings"]


def test_inner_stream_gets_a_default_topic() -> None:
    """A derived stream that is no output has a topic named after network and box."""
    made = plan(tolls(), OWNER)
    (_, inner) = made.fragments[1].inputs
    assert isinstance(inner, DerivedStream)
    assert inner == made.fragments[0].output
    assert inner.topic == "local.net.tolls"
    assert inner.key == ("road", "segment")
    assert inner.key_schema_json is not None


def test_unread_box_is_written_and_reported() -> None:
    """A box without readers becomes an output with the default topic."""
    source = external("s")
    made = plan(network((source,), (filtered("kept", source, "`at` > 0"),)), OWNER)
    assert [f.output.topic for f in made.fragments] == ["local.net.kept"]
    assert "kept is read by no box: it is written to topic local.net.kept" in made.notes


def test_shared_filter_is_copied_and_output_filter_is_read() -> None:
    """A box that is no output is computed wherever it is needed, an output only once."""
    source = external("s")
    shared = filtered("shared", source, "`at` > 0")
    one, two = filtered("one", shared, "`at` > 1"), filtered("two", shared, "`at` > 2")
    copied = plan(network((source,), (shared, one, two)), OWNER)
    assert _boxes(copied) == {"one": ["shared", "one"], "two": ["shared", "two"]}
    read = plan(network((source,), (shared, one, two), ("shared",)), OWNER)
    assert _boxes(read) == {"shared": ["shared"], "one": ["one"], "two": ["two"]}


def test_a_function_is_called_once_for_a_deduplication() -> None:
    """Which reads everything twice: the function's output has a topic."""
    source = external("s", column("a"))
    made = python("made", source)
    few = filtered("few", made, "`twice` > 1")
    once = deduplicated("once", few, ("twice",), 5)
    planned = plan(network((source,), (made, few, once), ("once",)), OWNER)
    assert _boxes(planned) == {"few": ["made", "few"], "once": ["once"]}


def test_unread_stream_is_omitted() -> None:
    """No topic is required for a stream without readers."""
    source, spare = external("s"), external("spare")
    made = plan(network((source, spare), (filtered("f", source, "`at` > 0"),)), OWNER)
    assert "spare-topic" not in {topic.name for topic in made.topics}
    assert "stream spare is read by no box: it is left out" in made.notes


@settings(max_examples=examples(300))
@given(networks())
def test_every_network_is_cut_into_runnable_fragments(made_up: Network) -> None:
    """At most one stateful box each, inputs that exist, no loop, every output written once."""
    made = plan(made_up, OWNER)
    outside = {stream.name for stream in made_up.streams}
    written: set[str] = set()
    for fragment in made.fragments:
        assert sum(traits(box).stateful for box in fragment.boxes) <= 1
        known = {stream.name for stream in fragment.inputs}
        assert known <= outside | written
        for box in fragment.boxes:
            assert set(box.inputs) <= known
            known.add(stream_of_box(box.name))
        assert fragment.output.name == stream_of_box(fragment.boxes[-1].name)
        assert str(fragment.name) == fragment.output.name
        used = {stream for box in fragment.boxes for stream in box.inputs}
        assert {stream.name for stream in fragment.inputs} <= used
        assert {stream_of_box(box.name) for box in fragment.boxes[:-1]} <= used
        written.add(fragment.output.name)
    ends = Counter(fragment.output.name for fragment in made.fragments)
    assert all(ends[output.stream] == 1 for output in made_up.outputs)
    assert max(ends.values()) == 1


@settings(max_examples=examples(50))
@given(networks())
def test_planning_is_deterministic(made_up: Network) -> None:
    """The same network gives the same plan."""
    assert plan(made_up, OWNER) == plan(made_up, OWNER)


def _with_output(topic: str) -> Network:
    planned = tolls()
    outputs = (Output(StreamName("tow_dispatch"), TopicName(topic), 4), planned.outputs[0])
    return replace(planned, outputs=outputs)


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("sightings-topic", "topic sightings-topic is used 2 times by the network"),
        ("local.net.tolls.dlq", "topic local.net.tolls.dlq is used 2 times by the network"),
        (
            "local_net_tolls",
            "topics local.net.tolls and local_net_tolls differ only in '.' and '_'",
        ),
        ("a b", "Kafka accepts no topic named a b"),
        ("x" * 240, "Kafka accepts no topic named xxx"),
    ],
)
def test_invalid_topics_are_refused(topic: str, message: str) -> None:
    """An output cannot share a topic, nor have a name that Kafka refuses."""
    with pytest.raises(DocumentError) as caught:
        plan(_with_output(topic), OWNER)
    assert message in str(caught.value)


def test_one_error_in_a_topic_is_reported_once() -> None:
    """The topics that follow from a wrong one are not reported as well."""
    with pytest.raises(DocumentError) as caught:
        plan(_with_output("toll_notifications-out"), OWNER)
    assert len(caught.value.problems) == 1
