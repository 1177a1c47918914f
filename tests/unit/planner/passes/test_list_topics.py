from dataclasses import replace

from pipeline.ids import TopicName
from pipeline.planner.plan import NewTopic
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, external, filtered, network, tolls

CARS = external("cars")


def _topics(**changes: int) -> dict[str, NewTopic]:
    changed = replace(tolls(), **changes)  # type: ignore[arg-type]  # mypy cannot follow keywords
    return {topic.name: topic for topic in plan(changed, OWNER).topics}


def test_every_fragment_gets_its_topics_and_inputs_come_first() -> None:
    """Output, boundaries, dead letters, redrive and markers, three times.

    Redrive topics are there for when they are needed, so that a deploy creates four a fragment.
    """
    names = list(_topics())
    assert names[0] == "sightings-topic"
    assert len(names) == 1 + 3 * 5
    assert names[1:6] == [
        "local.net.tolls",
        "local.net.tolls.boundaries",
        "local.net.tolls.dlq",
        "local.net.tolls.redrive",
        "local.net.tolls.markers",
    ]


def test_a_redrive_topic_is_created_on_demand() -> None:
    """Only then: three fragments, two of them results, have thirteen topics until then."""
    later = [name for name, topic in _topics().items() if topic.when_needed]
    assert later == [
        f"local.net.{f}.redrive" for f in ("tolls", "toll_notifications", "tow_dispatch")
    ]
    assert len(_topics()) - len(later) == 1 + 3 * 4 == 13


def test_only_input_topics_are_external() -> None:
    """A topic that others write may well exist already."""
    assert [topic.name for topic in _topics().values() if topic.external] == ["sightings-topic"]


def test_topics_that_lanes_read_have_equal_retention() -> None:
    """A stopped lane finds its positions in every input again."""
    topics = _topics(retention_ms=1234)
    for name in ("sightings-topic", "local.net.tolls", "local.net.tolls.redrive"):
        assert dict(topics[name].config)["retention.ms"] == "1234"


def test_an_output_defines_its_retention() -> None:
    """What the fragment keeps for itself goes by the network.

    What its reader is sent again is kept as long as the longest of what it reads.
    """
    source = external("s")
    first = filtered("f", source, "`at` > 0")
    made = network((source,), (first, filtered("g", first, "`at` > 1")), ("f", "g"))
    long, plain = (
        {topic.name: dict(topic.config).get("retention.ms") for topic in plan(n, OWNER).topics}
        for n in (
            replace(made, outputs=(replace(made.outputs[0], retention_ms=10**9), made.outputs[1])),
            made,
        )
    )
    changed = {str(name): kept for name, kept in long.items() if kept != plain[name]}
    assert changed == dict.fromkeys(("f-out", "local.net.g.redrive"), str(10**9))


def test_internal_topics_may_be_kept_by_need() -> None:
    """Not outputs, nor what no fragment reads: who reads these is not known."""
    made = replace(tolls(), trims_internal=True)
    topics = {topic.name: topic for topic in plan(made, OWNER).topics}
    assert [name for name, one in topics.items() if one.by_need] == ["local.net.tolls"]
    assert plan(made, OWNER).kept.by_need == {"local.net.tolls"}
    config = dict(topics[TopicName("local.net.tolls")].config)
    assert (config["retention.ms"], config["retention.bytes"]) == ("-1", "-1")
    assert not plan(tolls(), OWNER).kept.by_need
    alone = network((CARS,), (filtered("unread", CARS, "`at` > 0"),), outputs=())
    assert not plan(replace(alone, trims_internal=True), OWNER).kept.by_need


def test_a_shorter_stream_shortens_no_redrive_topic() -> None:
    """It is read together with a stream that may be older."""
    source = replace(external("s"), retention_ms=60_000)
    made = plan(network((source,), (filtered("f", source, "`at` > 0"),), ("f",)), OWNER)
    kept = {str(topic.name): dict(topic.config).get("retention.ms") for topic in made.topics}
    assert kept["s-topic"] == "60000"
    assert kept["f-out"] == kept["local.net.f.redrive"] == "604800000"


def test_topics_without_kept_timestamps_use_the_time_of_the_broker() -> None:
    """An old record's dead letter is not removed with it; a node's clock may be wrong."""
    stamped = {
        name
        for name, topic in _topics().items()
        if dict(topic.config).get("message.timestamp.type") == "LogAppendTime"
    }
    own = (".dlq", ".markers", ".boundaries")
    assert stamped == {name for name in _topics() if name.endswith(own)}
    assert len(stamped) == 3 * len(own)


def test_where_timestamps_are_kept_any_is_accepted() -> None:
    """A broker would refuse what its producers' clocks or event time have ahead.

    Nor does it stamp them itself, whatever its default for new topics is.
    """
    topics = _topics()
    for name in ("local.net.tolls", "local.net.tolls.redrive"):
        config = dict(topics[name].config)
        assert int(config["message.timestamp.after.max.ms"]) > 10**18
        assert config["message.timestamp.type"] == "CreateTime"
    assert "message.timestamp.type" not in dict(topics["sightings-topic"].config)


def test_kafka_expires_no_dead_letter() -> None:
    """A rebuild needs them by position; lanes remove those that are old and not needed."""
    topics = _topics(retention_ms=1234)
    config = dict(topics["local.net.tolls.dlq"].config)
    assert (config["retention.ms"], config["retention.bytes"]) == ("-1", "-1")
    assert config["cleanup.policy"] == "delete"
    assert [name for name, topic in topics.items() if topic.trimmed] == [
        name for name in topics if name.endswith(".dlq")
    ]


def test_markers_and_boundaries_are_compacted_and_have_one_partition() -> None:
    """Their records have one order, and only the newest per key counts."""
    topics = _topics()
    for name in ("local.net.tolls.markers", "local.net.tolls.boundaries"):
        assert dict(topics[name].config)["cleanup.policy"] == "compact"
        assert topics[name].partitions == 1
        assert topics[name].single_partition


def test_partition_counts_follow_the_inputs() -> None:
    """Dead letters have as many partitions as the widest input."""
    source = replace(external("s"), partitions=7)
    made = plan(network((source,), (filtered("f", source, "`at` > 0"),), ("f",)), OWNER)
    topics = {str(topic.name): topic for topic in made.topics}
    assert topics["f-out"].partitions == 4
    assert topics["local.net.f.dlq"].partitions == topics["local.net.f.redrive"].partitions == 7
    assert topics["local.net.f.dlq"].follows == ("s-topic",)


def test_a_topic_of_two_streams_is_listed_once() -> None:
    """The topic gets the larger of the two counts, and the longer of the two retentions."""
    one = replace(external("one"), retention_ms=10**9)
    two = replace(external("two"), topic=one.topic, partitions=9)
    boxes = (filtered("f", one, "`at` > 0"), filtered("g", two, "`at` > 0"))
    made = plan(network((one, two), boxes), OWNER)
    (topic,) = (topic for topic in made.topics if topic.external)
    assert topic.partitions == 9
    assert dict(topic.config)["retention.ms"] == str(10**9)


def test_replicated_topics_need_two_in_sync_replicas() -> None:
    """A record counts as written only when it survives the loss of a broker."""
    assert all("min.insync.replicas" in dict(t.config) for t in _topics(replication=3).values())
    assert not any("min.insync.replicas" in dict(t.config) for t in _topics().values())
