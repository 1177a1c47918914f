"""`medusa contract check`: a fragment that runs here, compared with a contract."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.contracts.documents.terms_yaml import write_terms
from pipeline.contracts.terms import PartyId, TaskSet
from pipeline.ids import FragmentName, Millis, ParticipantId
from pipeline.system_clock import SystemClock
from tests.unit.cli.conftest import Called, Caller
from tests.unit.cli.reports import CARS, NODE, deployed, report
from tests.unit.cli.twins import opener
from tests.unit.contracts.parties import BOB, DAY_MS, terms
from tests.unit.deploy.twins import NOW, World

ME = PartyId("local")
As = Callable[..., Called]
MOVING = FragmentName("moving")
CHECK = ("contract", "check", "load-2027", "cars.moving", "--privacy", "public")


@pytest.fixture
def world(medusa: Caller) -> World:
    """A node runs the fragment."""
    world = World.new()
    deployed(medusa, world)
    world.catalog.format.ensure(ParticipantId(BOB))
    report(world, MOVING, LaneState.RUNNING)
    return world


@pytest.fixture
def call(medusa: Caller, world: World) -> As:
    """Caller as one of the participants, each with a folder of keys."""

    def run(party: PartyId, *arguments: str) -> Called:
        keys = Path(f"keys-{party}").absolute()
        own = (f"--set=participant={party}", f"--set=keys={keys}")
        return medusa(*arguments, *own, opener=opener(world))

    return run


def agreed(call: As, *boxes: str) -> None:
    """A contract about some kinds of boxes, in force now."""
    for party in (ME, BOB):
        assert call(party, "participant", "init").code == 0
    begin = Millis(SystemClock().now_ms() - DAY_MS)
    end = Millis(begin + 30 * DAY_MS)
    tasks = TaskSet(frozenset(boxes))
    found = terms(buyer=ME, from_ms=begin, until_ms=end, tasks=tasks)
    Path("load.yaml").write_text(write_terms(found))
    assert call(ME, "contract", "propose", "load.yaml", "--yes").code == 0
    assert call(BOB, "contract", "accept", "load-2027", "--yes").code == 0


def metered(world: World, tasks: int) -> None:
    """The node has metered so many thousandths of a load unit per second."""
    load = FragmentLoad(CARS, MOVING, 0, tasks, 0, 0, 0, 1, 1, 1, 1, 1)
    at = (NODE.started_at_ms, NOW, 60_000, 1_000, 2, 0, 0, tasks, 0)
    world.catalog.loads.report(NodeLoadRecord(NODE.node, NODE.participant, *at, (load,)))


def test_a_fragment_that_fits_is_permitted(call: As, world: World) -> None:
    """With the load that it was compared with; nothing is moved."""
    agreed(call, "filter")
    metered(world, 12_500)
    found = call(ME, *CHECK, "-o", "json").data
    assert (found["permitted"], found["load"]["units_per_s"]) == (True, 12.5)
    assert "load-2027 permits cars.moving" in call(ME, *CHECK).out
    assert world.catalog.transfers.of(CARS.participant) == ()


def test_what_the_terms_forbid_is_refused_with_each_of_them(call: As, world: World) -> None:
    """Without an answer about privacy the data count as personal."""
    agreed(call, "join")
    metered(world, 50_001)
    found = call(ME, *CHECK[:4])
    assert found.code == 65
    for term in ("tasks: it is not about filter", "limits: more cpu", "clauses.privacy"):
        assert term in found.err


def test_a_fragment_that_was_not_metered_or_is_not_there_is_refused(call: As, world: World) -> None:
    """A load is never taken for nothing."""
    agreed(call, "filter")
    assert "its load is not known" in call(ME, *CHECK).err
    metered(world, 1)
    gone = call(ME, "contract", "check", "load-2027", "cars.gone")
    assert (gone.code, "there is no fragment" in gone.err) == (65, True)
    whole = call(ME, "contract", "check", "load-2027", "cars")
    assert whole.code == 64
    bad = call(ME, *CHECK, "--delay", "soon")
    assert (bad.code, "no duration" in bad.err) == (64, True)
