"""Backup and restore of a catalog and its schemas on real ZooKeeper."""

import uuid

import pytest

from brokers.embedded.stack import EmbeddedStack
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.backup import dumps, loads, read, restore
from pipeline.catalog.catalog import Catalog
from pipeline.ids import Epoch, FragmentId, ParticipantId
from pipeline.names import FragmentNames, Znodes
from schemas.registry.names import SubjectName
from schemas.registry.prepare import Sent
from schemas.registry.register import register
from schemas.registry.registry import Registry
from schemas.registry.state import Decided, State, Version
from tests.unit.catalog.support import (
    MOVING,
    NOW,
    SPEED,
    TOLLS,
    fragment,
    network,
    network_version,
    node,
)

pytestmark = pytest.mark.system

TIMEOUT_S = 10.0
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'


def registered(store: ZooKeeperStore, znodes: Znodes, schema: str = SCHEMA) -> tuple[Version, bool]:
    """Register a schema; returns its version, and whether it is new."""
    registry = Registry(store, znodes.registry())

    def decide(state: State) -> Decided[tuple[Version, bool]]:
        name = SubjectName.parse("cars-value" if schema == SCHEMA else "other-value")
        made = register(state, name, Sent(schema), normal=False, now_ms=NOW)
        return Decided((made.version, bool(made.changes)), made.changes)

    try:
        return registry.change(decide)
    finally:
        registry.close()


def test_a_catalog_is_restored_with_its_schemas(embedded_stack: EmbeddedStack) -> None:
    """From a backup file; new epochs are above the written ones, ids are unchanged."""
    servers = f"{embedded_stack.settings.zookeeper_connect}/backup/{uuid.uuid4().hex}"
    znodes = Znodes("")
    old = ZooKeeperStore.connect(f"{servers}/old", TIMEOUT_S)
    new = ZooKeeperStore.connect(f"{servers}/new", TIMEOUT_S)
    try:
        before, after = Catalog(old, znodes), Catalog(new, znodes)
        before.format.ensure(ParticipantId("local"))
        before.nodes.register(node())
        fragments = (fragment(), fragment(SPEED))
        before.networks.deploy(network(), network_version(), fragments, None)
        before.owners.claim(TOLLS, MOVING, node(), NOW)
        first, _ = registered(old, znodes)
        backup = loads(dumps(read(old, NOW)), "here")

        after.format.ensure(ParticipantId("local"))
        ran = FragmentNames(FragmentId(TOLLS, MOVING))
        restore(new, backup, {ran: Epoch(7)})

        assert after.fragments.of(TOLLS) == before.fragments.of(TOLLS)
        assert after.nodes.all() == ()
        assert after.owners.claim(TOLLS, MOVING, node(), NOW).epoch == 8
        assert after.owners.claim(TOLLS, SPEED, node(), NOW).epoch == 1
        assert registered(new, znodes) == (first, False)
        other = SCHEMA.replace('"R"', '"S"')
        assert registered(new, znodes, other)[0].id == first.id + 1
    finally:
        old.close()
        new.close()
