"""Desired states of fragments, and topics that a fragment gets after its deploy."""

from dataclasses import replace

import pytest

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, NetworkId, NetworkName, NetworkVersion, TopicName
from pipeline.names import FragmentNames
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import (
    ME,
    MOVING,
    NOW,
    SPEED,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    node,
    session,
)

NAMES = FragmentNames(FragmentId(TOLLS, MOVING))


def add(catalog: Catalog, topic_id: str = "id-7", *, made: bool = True) -> None:
    """Add the redrive topic to a fragment."""
    catalog.fragments.add_topic(TOLLS, MOVING, NAMES.redrive, topic_id, made=made)


@pytest.fixture
def catalog() -> Catalog:
    """A catalog with two fragments."""
    _, found = session(MemoryTree())
    deployed(found, MOVING, SPEED)
    return found


def test_adding_a_topic_changes_the_fragment_and_its_network(catalog: Catalog) -> None:
    """In one step that raises the revision; the version and the other fragment are unchanged."""
    before, others = catalog.fragments.get(TOLLS, MOVING), catalog.fragments.get(TOLLS, SPEED)
    assert before is not None
    add(catalog)
    found = catalog.networks.get(TOLLS)
    assert found == replace(network(), made_topics=(NAMES.redrive, TopicName("tolls.moving")))
    known = ((NAMES.redrive, "id-7"),)
    assert catalog.fragments.get(TOLLS, MOVING) == replace(before, topic_ids=known)
    assert (catalog.fragments.get(TOLLS, SPEED), catalog.networks.revision(ME)) == (others, 2)


def test_adding_a_topic_again_changes_nothing(catalog: Catalog) -> None:
    """So it is idempotent: no lane restarts."""
    add(catalog)
    add(catalog)
    add(catalog, made=False)
    assert catalog.networks.revision(ME) == 2


def test_a_topic_created_by_others_is_not_recorded_as_created(catalog: Catalog) -> None:
    """So `destroy` does not remove it."""
    add(catalog, made=False)
    assert catalog.networks.get(TOLLS) == network()
    assert dict(catalog.fragments.of(TOLLS)[1].topic_ids) == {NAMES.redrive: "id-7"}


def test_another_topic_of_the_same_name_is_an_error(catalog: Catalog) -> None:
    """Positions in one would be used as positions in the other."""
    add(catalog)
    with pytest.raises(RetryError, match=r"topic local\.tolls\.moving\.redrive was made again"):
        add(catalog, "id-8")
    assert catalog.networks.revision(ME) == 2


def test_a_removed_fragment_gets_no_topic(catalog: Catalog) -> None:
    """Nor does one whose network was removed."""
    catalog.networks.deploy(network(2), network_version(2), (fragment(SPEED),), NetworkVersion(1))
    with pytest.raises(RefusedError, match="not deployed any more"):
        add(catalog)
    catalog.networks.remove(TOLLS)
    with pytest.raises(RefusedError, match="not deployed any more"):
        add(catalog)


def test_a_deploy_planned_before_a_topic_was_added_fails(catalog: Catalog) -> None:
    """It would remove the topic, and its creation by the network, from the records."""
    known = catalog.fragments.of(TOLLS)
    add(catalog)
    with pytest.raises(RetryError, match="fragment moving is not what it was"):
        catalog.networks.deploy(network(2), network_version(2), known, NetworkVersion(1), known)
    found = catalog.networks.get(TOLLS)
    assert found is not None
    assert (found.version, NAMES.redrive in found.made_topics) == (1, True)


def test_fragments_can_be_stopped_and_started() -> None:
    """The desired state of the named fragments, or of all, changes in one revision."""
    _, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    catalog.fragments.set_desired(TOLLS, DesiredState.STOPPED, (MOVING,))
    assert [f.desired for f in catalog.fragments.of(TOLLS)] == [
        DesiredState.RUNNING,
        DesiredState.STOPPED,
    ]
    catalog.fragments.set_desired(TOLLS, DesiredState.STOPPED)
    assert {f.desired for f in catalog.fragments.of(TOLLS)} == {DesiredState.STOPPED}
    assert catalog.networks.revision(ME) == 3
    catalog.fragments.set_desired(TOLLS, DesiredState.STOPPED)
    assert catalog.networks.revision(ME) == 3
    catalog.fragments.set_desired(TOLLS, DesiredState.RUNNING, before=DesiredState.PAUSED)
    assert catalog.networks.revision(ME) == 3
    assert {f.desired for f in catalog.fragments.of(TOLLS)} == {DesiredState.STOPPED}


def test_a_fragment_that_is_paused_rests_until_its_next_claim() -> None:
    """In the record of its owner, if it has one; to resume it is not enough."""
    _, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    here = node()
    catalog.nodes.register(here)
    before = catalog.owners.claim(TOLLS, MOVING, here, NOW)
    catalog.fragments.set_desired(TOLLS, DesiredState.PAUSED)
    (owner,) = catalog.owners.of(TOLLS).values()
    assert (owner.epoch, owner.rests) == (before.epoch, True)
    catalog.fragments.set_desired(TOLLS, DesiredState.STOPPED)
    catalog.fragments.set_desired(TOLLS, DesiredState.RUNNING)
    assert list(catalog.owners.of(TOLLS).values()) == [owner]
    catalog.owners.claim(TOLLS, MOVING, here, NOW)
    assert [one.rests for one in catalog.owners.of(TOLLS).values()] == [False]


def test_a_fragment_that_does_not_exist_cannot_be_stopped() -> None:
    """The error lists the existing ones."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    with pytest.raises(RefusedError, match="not deployed") as caught:
        catalog.fragments.set_desired(NetworkId(ME, NetworkName("other")), DesiredState.STOPPED)
    assert "tolls" in caught.value.hint
    with pytest.raises(RefusedError, match="no fragment average_speed") as caught:
        catalog.fragments.set_desired(TOLLS, DesiredState.STOPPED, (SPEED,))
    assert "moving" in caught.value.hint
