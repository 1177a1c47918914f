"""Rebuilds that begin from an older checkpoint; what Spark does with them is in system tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.ids import BatchId, Epoch, Offset
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CommittedState
from pipeline.markers.positions import InputPartition
from pipeline.spark.run.rebuild_query import RebuildQuery
from pipeline.spark.run.spark_errors import DamagedCheckpointError
from tests.unit.spark.run.test_rebuild import MARKER, cluster, ended, tolls
from tests.unit.spark.support import fragment

TOLLS = fragment("tolls")


@dataclass
class World:
    """A query of a rebuild, none of whose batches can be executed."""

    root: Path
    amnesia: bool = False
    leaderless: tuple[str, ...] = ()
    emptied: list[Epoch] = field(default_factory=list)

    def folder(self, _epoch: Epoch) -> Path:
        """See `Folders`."""
        return self.root

    def empty(self, epoch: Epoch) -> Path:
        """See `Folders`."""
        self.emptied.append(epoch)
        return self.root

    def at(self, _positions: Mapping[InputPartition, Offset]) -> int:
        """See `BatchLimit`."""
        raise DamagedCheckpointError("a file is gone")

    @property
    def query(self) -> RebuildQuery:
        """The query."""
        lane = SimpleNamespace(fragment="local.net.tolls")
        settings = SimpleNamespace(
            amnesia=self.amnesia, epoch=Epoch(4), lane=lane, fragment=TOLLS, place="fragment tolls"
        )
        kafka = cluster(*self.leaderless)
        host = SimpleNamespace(kafka=kafka, resolver=SimpleNamespace(admin=kafka))
        none = cast("Any", None)
        return RebuildQuery(
            cast("Any", settings),
            cast("Any", host),
            none,
            cast("Any", self),
            self,
            none,
            none,
            none,
            none,
        )


def lacking(offsets: int) -> Rebuild:
    """A rebuild from a state that lacks some offsets of each partition."""
    marker = replace(MARKER, end=ended(tolls(), 8))
    since = CommittedState(BatchId(4), ended(tolls(), 8 - offsets), MARKER.eviction_ms)
    begin, eviction_ms = ended(tolls(), 3), marker.eviction_ms
    return Rebuild(marker, begin, eviction_ms, "it is older", since=since)


def test_a_state_that_lacks_nothing_waits_for_no_topic(tmp_path: Path) -> None:
    """All are out of reach: it is taken as it is, and needs later what it has needed before."""
    names = TOLLS.names
    topics = (names.dead_letters, *(stream.topic for stream in TOLLS.inputs))
    found = World(tmp_path, leaderless=topics).query.run(lacking(0), tolls())
    assert (found.last, found.todo.needed, found.refused) == (4, ended(tolls(), 3), ())


def test_only_without_amnesia_the_log_takes_the_place_of_a_checkpoint(tmp_path: Path) -> None:
    """With it the lane would read all that it is not to read, if the log still has it."""
    for amnesia in (False, True):
        world = World(tmp_path, amnesia=amnesia)
        with pytest.raises(DamagedCheckpointError):
            world.query.run(lacking(1), tolls())
        assert bool(world.emptied) is not amnesia
