"""The readers of a topic, as the catalog shows them."""

from dataclasses import replace

import pytest

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import FragmentRecord, Standby, Transfer
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkVersion,
    TopicName,
)
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.lanes.needed_by_readers import Reader
from pipeline.markers.deploys import DeployId
from pipeline.planner.state import OnChange
from pipeline.trimming.readers import ReadersInCatalog
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import (
    LIFE,
    ME,
    MOVING,
    NODE1,
    NODE2,
    NOW,
    SPEED,
    TOLLS,
    fragment,
    network,
    network_version,
    node,
    session,
)

TOPIC, ID = TopicName("local.tolls.moving"), "one"
WRITER = replace(fragment(MOVING), topic_ids=((TOPIC, ID),))
READER = replace(fragment(SPEED), topic_ids=((TOPIC, ID), (TopicName("other"), "two")))
OTHER = replace(fragment(FragmentName("other")), topic_ids=((TopicName("other"), "two"),))
DEPLOY = DeployId(LIFE, NetworkVersion(1))
SPEED_ID = FragmentId(TOLLS, SPEED)


def catalog_of(*records: FragmentRecord) -> Catalog:
    """A catalog with a network of these fragments, and two nodes; the first one owns them."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    catalog.networks.deploy(network(), network_version(), records, None)
    for name in (NODE1, NODE2):
        catalog.nodes.register(node(name))
    for record in records:
        catalog.owners.claim(TOLLS, record.fragment, node(NODE1), NOW)
    return catalog


def readers(catalog: Catalog) -> tuple[Reader, ...]:
    """The readers of the topic."""
    return ReadersInCatalog(catalog, FragmentId(TOLLS, MOVING)).find(TOPIC, ID)[1]


def test_the_readers_are_the_deployed_fragments_with_its_id() -> None:
    """Not the writer itself."""
    assert readers(catalog_of(WRITER, READER, OTHER)) == (Reader(SPEED_ID, DEPLOY),)


def test_a_reader_of_an_earlier_topic_of_that_name_is_one() -> None:
    """It needs a deploy before its positions mean anything."""
    earlier = replace(READER, topic_ids=((TOPIC, "earlier"),))
    assert [one.fragment for one in readers(catalog_of(WRITER, earlier))] == [SPEED_ID]


def test_the_choice_for_a_state_is_that_of_the_reader() -> None:
    """With the incarnation that it was made for."""
    chosen = replace(READER, choice=(OnChange.REBUILD, Incarnation("1-5")))
    assert readers(catalog_of(WRITER, chosen)) == (Reader(SPEED_ID, DEPLOY, Incarnation("1-5")),)


@pytest.mark.parametrize(
    ("phase", "is_held"),
    [
        (None, True),
        (FollowerPhase.BUILDING, True),
        (FollowerPhase.FOLLOWING, True),
        (FollowerPhase.CATCHING_UP, True),
        (FollowerPhase.LEVEL, False),
        (FollowerPhase.WAITING, False),
        (FollowerPhase.DISCARDED, False),
    ],
)
def test_a_secondary_that_may_build_a_state_holds(
    phase: FollowerPhase | None, *, is_held: bool
) -> None:
    """Also one that has reported nothing yet."""
    catalog = catalog_of(WRITER, replace(READER, active_standbys=1))
    if phase is not None:
        standby = Standby(TOLLS, SPEED, phase, "", Millis(NOW))
        catalog.standbys.report(node(NODE2), (standby,))
    (found,) = readers(catalog)
    assert bool(found.follower) is is_held
    assert not is_held or found.follower == "has a follower on node node2 that is not level"


def test_a_move_holds() -> None:
    """Its follower builds a state from the last marker on."""
    catalog = catalog_of(WRITER, READER)
    owner = catalog.owners.get(TOLLS, SPEED)
    assert owner is not None
    catalog.transfers.ask(
        Transfer(
            TOLLS, LIFE, SPEED, NetworkVersion(1), NODE1, Epoch(owner.epoch), NODE2, NOW,
            NOW, Millis(NOW + 1_000), is_ready=False, problem="",
        )
    )  # fmt: skip
    assert [one.follower for one in readers(catalog)] == ["moves to node node2"]
