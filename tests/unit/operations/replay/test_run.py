from typing import cast

import pytest

from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.operations.connections import Connections
from pipeline.operations.replay.engine import ReplayEngine
from pipeline.operations.replay.inputs import replay_input, replay_period
from pipeline.operations.replay.output import check_empty, output_topic
from pipeline.operations.replay.run import Replayed, replay
from pipeline.replay.period import Interval
from tests.unit.deploy.twins import NOW, World
from tests.unit.operations.twins import TwinRecomputer


def test_results_are_written_into_a_topic_of_their_own(
    world: World, connections: Connections, engine: ReplayEngine, reports: list[str]
) -> None:
    """Settings of the output, except unlimited retention; records left out are counted."""
    period = replay_period(engine.what, Interval(NOW, None), connections)
    found = replay_input(engine.what, period, connections, incomplete=False)
    assert (found.offsets, found.since, found.late) == (3, (NOW, None, None, None), 0)
    into = output_topic(engine.what, None, connections)
    assert (into.name, dict(into.config)["retention.ms"]) == ("moving-cars.replay-1", "-1")
    cast("TwinRecomputer", engine.recomputer).made = [(b"k", b"v", NOW, -1, None)]
    done = replay(found, into, engine, connections, world.clock)
    assert done == Replayed(1, {"undecodable": 1}, {"evaluation_failed": 1})
    assert [record.key for record in world.records(into.name)] == [b"k"]
    assert reports == ["opening a Spark session", "judging 3 offsets of the inputs", "computing"]
    with pytest.raises(RefusedError, match="it holds records"):
        check_empty(into, connections)


def test_a_period_without_results_is_refused(
    connections: Connections, engine: ReplayEngine
) -> None:
    """Its end is before its beginning."""
    with pytest.raises(RefusedError, match="does not lie after"):
        replay_period(engine.what, Interval(NOW, Millis(NOW - 1)), connections)
