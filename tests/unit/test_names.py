"""Literal forms of every stored name, which other tests compute with `pipeline.names`."""

from pipeline.ids import (
    BoxName,
    Epoch,
    FragmentId,
    FragmentName,
    NetworkId,
    NetworkName,
    NodeId,
    ParticipantId,
    SchemaGuid,
    SchemaId,
    TopicName,
)
from pipeline.names import (
    FragmentNames,
    Znodes,
    boundaries_topic,
    checkpoint_folder,
    derived_topic,
    doctor_group,
    doctor_transactions,
    replay_topic,
    value_subject,
)

ANN, BOB = ParticipantId("ann"), ParticipantId("bob")
TOLLS, SPEED = NetworkId(ANN, NetworkName("tolls")), FragmentName("speed")
THEIRS = NetworkId(BOB, NetworkName("tolls"))
NAMES = FragmentNames(FragmentId(TOLLS, SPEED))
ZNODES = Znodes("/our")
OF_ALL = {
    ZNODES.format(),
    ZNODES.participants(),
    ZNODES.missing_schemas(),
    ZNODES.missing_guids(),
    ZNODES.missing_schema(SchemaId(7)),
    ZNODES.missing_schema(SchemaGuid("0-1")),
    ZNODES.doctor(),
    ZNODES.registry(),
}


def in_kafka(network: NetworkId) -> list[str]:
    """Topics, groups and transactional ids of a network and of its participant."""
    names, out = FragmentNames(FragmentId(network, SPEED)), derived_topic(network, BoxName("speed"))
    return [
        out,
        boundaries_topic(out),
        replay_topic(out, 1),
        value_subject(out),
        names.dead_letters,
        names.redrive,
        names.markers,
        names.group,
        names.writer,
        names.stable.transactional_id,
        names.redriver,
        names.replayer(TopicName("again")),
        doctor_group(network.participant),
        doctor_transactions(network.participant),
    ]


def in_zookeeper(network: NetworkId) -> list[str]:
    """The paths of a network and of its participant."""
    participant = network.participant
    return [
        ZNODES.participant(participant),
        ZNODES.nodes(participant),
        ZNODES.node(participant, NodeId("n1")),
        ZNODES.networks(participant),
        ZNODES.network(network),
        ZNODES.versions(network),
        ZNODES.version(network, 3),
        ZNODES.fragments(network),
        ZNODES.fragment(network, SPEED),
        ZNODES.owner(network, SPEED),
        ZNODES.status(network, SPEED),
        ZNODES.started(network, SPEED),
        ZNODES.epochs(participant),
        ZNODES.epoch(network, SPEED),
        ZNODES.deploys(participant),
        ZNODES.deploy(network),
    ]


def test_names_in_kafka_begin_with_the_participant() -> None:
    """So one prefix grants the rights to all topics, groups and transactional ids of it."""
    assert in_kafka(TOLLS) == [
        "ann.tolls.speed",
        "ann.tolls.speed.boundaries",
        "ann.tolls.speed.replay-1",
        "ann.tolls.speed-value",
        "ann.tolls.speed.dlq",
        "ann.tolls.speed.redrive",
        "ann.tolls.speed.markers",
        "ann.tolls.speed",
        "ann.tolls.speed",
        "ann.tolls.speed.stable-0",
        "ann.tolls.speed.redrive",
        "ann.tolls.speed.replay.again",
        "ann.doctor",
        "ann.doctor",
    ]


def test_paths_in_zookeeper_are_below_the_participant() -> None:
    """So one path grants the rights to all that it owns."""
    ann = "/our/participants/ann"
    assert in_zookeeper(TOLLS) == [
        ann,
        f"{ann}/nodes",
        f"{ann}/nodes/n1",
        f"{ann}/networks",
        f"{ann}/networks/tolls",
        f"{ann}/networks/tolls/versions",
        f"{ann}/networks/tolls/versions/00000003",
        f"{ann}/networks/tolls/fragments",
        f"{ann}/networks/tolls/fragments/speed",
        f"{ann}/networks/tolls/fragments/speed/owner",
        f"{ann}/networks/tolls/fragments/speed/status",
        f"{ann}/networks/tolls/fragments/speed/started",
        f"{ann}/epochs",
        f"{ann}/epochs/tolls.speed",
        f"{ann}/deploys",
        f"{ann}/deploys/tolls",
    ]


def test_shared_paths_are_not_below_a_participant() -> None:
    """The format of the catalog, facts about the registry, and the registry."""
    assert sorted(OF_ALL) == [
        "/our/doctor",
        "/our/format",
        "/our/missing_guids",
        "/our/missing_guids/0-1",
        "/our/missing_schemas",
        "/our/missing_schemas/0000000007",
        "/our/participants",
        "/our/registry",
    ]


def test_two_participants_with_one_network_name_share_no_name() -> None:
    """Neither in Kafka nor in ZooKeeper, nor on a disk that their nodes share."""
    assert not set(in_kafka(TOLLS)) & set(in_kafka(THEIRS))
    assert not set(in_zookeeper(TOLLS)) & set(in_zookeeper(THEIRS))
    assert NAMES.stable.checkpoint(Epoch(7)) == "ann/tolls/speed/stable-0/epoch-00000007"
    assert checkpoint_folder(TOLLS) == "ann/tolls"
    assert checkpoint_folder(THEIRS) == "bob/tolls"


def test_a_fragment_is_displayed_without_its_participant() -> None:
    """Commands act for one participant, so its name is not displayed."""
    assert (str(TOLLS), str(NAMES.id)) == ("tolls", "tolls.speed")
    assert TOLLS.full_name == "ann.tolls"
