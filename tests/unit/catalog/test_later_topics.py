"""Topics that a fragment gets after its deploy."""

from dataclasses import replace

import pytest

from brokers.memory_store import MemoryTree
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.later_topics import LaterTopic
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import NetworkVersion, TopicName
from pipeline.names import FragmentNames
from tests.unit.catalog.support import (
    ME,
    MOVING,
    SPEED,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    session,
)

NAMES = FragmentNames(ME, TOLLS, MOVING)
NEW = LaterTopic(NAMES, NAMES.redrive, "id-7", made=True)


@pytest.fixture
def catalog() -> Catalog:
    """A catalog with two fragments."""
    _, found = session(MemoryTree())
    deployed(found, MOVING, SPEED)
    return found


def test_a_fragment_gets_a_topic_and_its_network_has_made_it(catalog: Catalog) -> None:
    """In one step, which nodes notice; the version and the other fragment stay as they are."""
    before, others = catalog.fragment(TOLLS, MOVING), catalog.fragment(TOLLS, SPEED)
    assert before is not None
    catalog.later_topics.add(NEW)
    found = catalog.network(TOLLS)
    assert found == replace(network(), made_topics=(TopicName("tolls.moving"), NAMES.redrive))
    known = ((NAMES.redrive, "id-7"),)
    assert catalog.fragment(TOLLS, MOVING) == replace(before, topic_ids=known)
    assert (catalog.fragment(TOLLS, SPEED), catalog.revision()) == (others, 2)


def test_what_is_known_changes_nothing(catalog: Catalog) -> None:
    """So running it again is harmless: no lane restarts."""
    catalog.later_topics.add(NEW)
    catalog.later_topics.add(NEW)
    catalog.later_topics.add(replace(NEW, made=False))
    assert catalog.revision() == 2


def test_a_topic_of_somebody_else_stays_theirs(catalog: Catalog) -> None:
    """Destroy removes what the network has made."""
    catalog.later_topics.add(replace(NEW, made=False))
    assert catalog.network(TOLLS) == network()
    assert dict(catalog.fragments(TOLLS)[1].topic_ids) == {NAMES.redrive: "id-7"}


def test_another_topic_of_the_name_is_told(catalog: Catalog) -> None:
    """Positions in the one would be taken for positions in the other."""
    catalog.later_topics.add(NEW)
    with pytest.raises(RetryError, match=r"topic tolls\.moving\.redrive was made again"):
        catalog.later_topics.add(replace(NEW, topic_id="id-8"))
    assert catalog.revision() == 2


def test_a_fragment_that_is_gone_gets_none(catalog: Catalog) -> None:
    """It, or its network."""
    catalog.deploy(network(2), network_version(2), (fragment(SPEED),), NetworkVersion(1))
    with pytest.raises(RefusedError, match="not deployed any more"):
        catalog.later_topics.add(NEW)
    catalog.remove_network(TOLLS)
    with pytest.raises(RefusedError, match="not deployed any more"):
        catalog.later_topics.add(NEW)


def test_a_deploy_that_was_planned_before_is_to_be_run_again(catalog: Catalog) -> None:
    """It would forget the topic, and whose it is."""
    known = catalog.fragments(TOLLS)
    catalog.later_topics.add(NEW)
    with pytest.raises(RetryError, match="fragment moving is not what it was"):
        catalog.deploy(network(2), network_version(2), known, NetworkVersion(1), known)
    found = catalog.network(TOLLS)
    assert found is not None
    assert (found.version, NAMES.redrive in found.made_topics) == (1, True)
