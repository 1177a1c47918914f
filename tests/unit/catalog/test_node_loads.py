"""Loads of nodes in the catalog."""

from dataclasses import replace

from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.ids import Millis, ParticipantId
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import LIFE, ME, MOVING, NODE1, NODE2, NOW, TOLLS
from tests.unit.catalog.support import catalog as catalog_on

FRAGMENT = FragmentLoad(TOLLS, MOVING, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
LOAD = NodeLoadRecord(NODE1, ME, NOW, NOW, 60_000, 1_000, 2, 5, 50, 20, 1, (FRAGMENT,))
