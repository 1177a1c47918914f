from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import StreamName, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.planner.planner import plan
from pipeline.spark.batch.facts import positions
from pipeline.spark.query.lower import lower
from tests.unit.planner.networks import OWNER, external, network, united
from tests.unit.spark.support import SCHEMA, fragment, lowering_context


def test_offsets_belong_to_the_input_whose_data_topic_they_name() -> None:
    """A redrive topic, which is shared, is distinguished by its source."""
    planned = fragment("toll_notifications")
    lowered = lower(planned, lowering_context(planned, redrive=True))
    found = positions(
        [
            {
                "sightings-topic": {"0": 5, "1": 7},
                "local.net.toll_notifications.redrive": {"0": 3},
            },
            {"local.net.tolls": {"0": 1}, "local.net.toll_notifications.redrive": {"0": 2}},
        ],
        lowered,
    )
    redrive = TopicName("local.net.toll_notifications.redrive")
    sightings, tolls = StreamName("sightings"), StreamName("tolls")
    assert found[InputPartition(sightings, TopicName("sightings-topic"), 1)] == 7
    assert found[InputPartition(sightings, redrive, 0)] == 3
    assert found[InputPartition(tolls, redrive, 0)] == 2
    assert len(found) == 5


def test_offsets_of_foreign_topics_are_a_broken_invariant() -> None:
    """A checkpoint of another plan must not be used for this one."""
    planned = fragment("tow_dispatch")
    lowered = lower(planned, lowering_context(planned))
    with pytest.raises(BrokenInvariantError, match="other"):
        positions([{"other": {"0": 5}}, {"other": {"0": 5}}], lowered)
    with pytest.raises(BrokenInvariantError, match="1 leaves, the query has 2"):
        positions([{"sightings-topic": {"0": 5}}], lowered)


def test_two_inputs_over_one_topic_have_separate_positions() -> None:
    """Each leaf is of its own input; one input with two leaves has one position."""
    topic = TopicName("sightings-topic")
    first, second = (
        replace(external(name), topic=TopicName("sightings-topic"), schema_json=SCHEMA)
        for name in ("first", "second")
    )
    both = network((first, second), (united("both", first, second),))
    planned = plan(both, OWNER).fragments[0]
    lowered = lower(planned, lowering_context(planned))
    found = positions([{"sightings-topic": {"0": 5}}, {"sightings-topic": {"0": 7}}], lowered)
    assert found == {
        InputPartition(StreamName("first"), topic, 0): 5,
        InputPartition(StreamName("second"), topic, 0): 7,
    }
    twice = fragment("tow_dispatch")
    with pytest.raises(BrokenInvariantError, match="one source has two positions: 5 and 7"):
        positions(
            [{"sightings-topic": {"0": 5}}, {"sightings-topic": {"0": 7}}],
            lower(twice, lowering_context(twice)),
        )
