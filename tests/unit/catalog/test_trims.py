"""Trims: announced before records are removed, unless a network has changed."""

from dataclasses import replace

import pytest

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState, TrimRecord
from pipeline.ids import Millis, Offset, TopicId, TopicName
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, MOVING, NOW, SPEED, TOLLS, deployed, session

TOPIC = TopicName("local.tolls.moving")
TRIM = TrimRecord(
    TOLLS, MOVING, TOPIC, TopicId("one"), ((0, Offset(5)), (1, Offset(2))), held="", at_ms=NOW
)


@pytest.fixture
def catalog() -> Catalog:
    """A catalog with a network."""
    _, found = session(MemoryTree())
    deployed(found, MOVING, SPEED)
    return found


def test_an_announcement_is_found_by_the_id_of_its_topic(catalog: Catalog) -> None:
    """Another topic of that name has lost nothing."""
    assert catalog.trims.announced(ME, {TOPIC: "one"}) == {}
    assert catalog.trims.announce(TRIM, catalog.trims.revision(ME))
    assert catalog.trims.of(ME) == (TRIM,)
    assert catalog.trims.announced(ME, {TOPIC: "one"}) == {TOPIC: {0: 5, 1: 2}}
    assert catalog.trims.announced(ME, {TOPIC: "two"}) == {}


def test_nothing_is_announced_once_a_network_has_changed(catalog: Catalog) -> None:
    """Its readers may be others now."""
    revision = catalog.trims.revision(ME)
    catalog.fragments.set_desired(TOLLS, DesiredState.PAUSED)
    assert not catalog.trims.announce(TRIM, revision)
    assert catalog.trims.of(ME) == ()


def test_announced_offsets_never_fall(catalog: Catalog) -> None:
    """An earlier owner may still carry out what it has announced."""
    revision = catalog.trims.revision(ME)
    catalog.trims.announce(TRIM, revision)
    later = replace(TRIM, before=((0, Offset(3)), (2, Offset(1))), held="because")
    assert catalog.trims.announce(later, revision)
    together = ((0, Offset(5)), (1, Offset(2)), (2, Offset(1)))
    assert catalog.trims.of(ME) == (replace(later, before=together),)


def test_another_topic_begins_anew(catalog: Catalog) -> None:
    """Offsets belong to one topic."""
    revision = catalog.trims.revision(ME)
    catalog.trims.announce(TRIM, revision)
    other = replace(TRIM, topic_id=TopicId("two"), before=((0, Offset(1)),))
    assert catalog.trims.announce(other, revision)
    assert catalog.trims.of(ME) == (other,)


def test_what_is_known_is_not_written_again(catalog: Catalog) -> None:
    """Whatever was deployed since: what was announced may be removed."""
    revision = catalog.trims.revision(ME)
    catalog.trims.announce(TRIM, revision)
    catalog.fragments.set_desired(TOLLS, DesiredState.PAUSED)
    assert catalog.trims.announce(replace(TRIM, at_ms=Millis(NOW + 1)), revision)
    assert catalog.trims.of(ME) == (TRIM,)


def test_a_trim_goes_with_its_fragment(catalog: Catalog) -> None:
    """The topic does, too."""
    catalog.trims.announce(TRIM, catalog.trims.revision(ME))
    catalog.networks.remove(TOLLS)
    assert catalog.trims.of(ME) == ()
