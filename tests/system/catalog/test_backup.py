"""A catalog that moves to another place of real ZooKeeper, with the schemas of our registry."""

import uuid

import pytest

from brokers.embedded.stack import EmbeddedStack
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.backup import dumps, loads, read, restore
from pipeline.catalog.catalog import Catalog
from pipeline.ids import Epoch, ParticipantId, Subject
from pipeline.names import FragmentNames, Znodes
from schemas.registry import Registry
from schemas.store import ZnodeSchemaStore
from tests.unit.catalog.support import (
    ME,
    MOVING,
    NODE1,
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


def test_a_catalog_moves_with_its_schemas(embedded_stack: EmbeddedStack) -> None:
    """Through the text of a file; epochs are above what has written, ids are what they were."""
    servers = f"{embedded_stack.settings.zookeeper_connect}/backup/{uuid.uuid4().hex}"
    znodes = Znodes("")
    old = ZooKeeperStore.connect(f"{servers}/old", TIMEOUT_S)
    new = ZooKeeperStore.connect(f"{servers}/new", TIMEOUT_S)
    try:
        before, after = Catalog(old, znodes), Catalog(new, znodes)
        before.ensure_format()
        before.register_node(node())
        fragments = (fragment(), fragment(SPEED))
        before.deploy(network(), network_version(), fragments, None)
        before.claim(TOLLS, MOVING, NODE1, ME, NOW)
        registry = Registry(ZnodeSchemaStore(old, znodes.schemas()))
        first = registry.register(Subject("cars-value"), SCHEMA)
        backup = loads(dumps(read(old, NOW)), "here")

        after.ensure_format()
        ran = FragmentNames(ParticipantId("local"), TOLLS, MOVING)
        restore(new, backup, {ran: Epoch(7)})

        assert after.fragments(TOLLS) == before.fragments(TOLLS)
        assert after.nodes() == ()
        assert after.claim(TOLLS, MOVING, NODE1, ME, NOW) == 8
        assert after.claim(TOLLS, SPEED, NODE1, ME, NOW) == 1
        moved = Registry(ZnodeSchemaStore(new, znodes.schemas()))
        assert moved.register(Subject("cars-value"), SCHEMA) == first
        other = SCHEMA.replace('"R"', '"S"')
        assert moved.register(Subject("other-value"), other).id == first.id + 1
    finally:
        old.close()
        new.close()
