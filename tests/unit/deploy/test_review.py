from dataclasses import replace

from pipeline.deploy.review import Surroundings, review
from pipeline.network.model import Network
from pipeline.planner.changes import Current
from pipeline.planner.diff import changes
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, column, external, held, network

DAY_MS = 86_400_000
CARS, OWNERS = external("cars", column("car")), external("owners", column("car"))


def warned(of: Network) -> tuple[str, ...]:
    """What a first deploy warns of."""
    planned, nothing = plan(of, OWNER), Current()
    found = changes(planned, None, nothing)
    return review(planned, found, Surroundings(nothing), {}).warnings


def test_topics_that_forget_what_a_box_keeps_are_told() -> None:
    """The table, for of the rows only those are kept that wait; not when it is kept as long."""
    box = held("owned", CARS, OWNERS, (("car", "car"),), {"car": "`left`.`car`"}, 30 * DAY_MS)
    short = network((CARS, OWNERS), (box,))
    told = (
        "owned keeps what lies up to 30d back, topic owners-topic for 7d: state that is lost could "
        "not be built again; write a longer retention"
    )
    assert warned(short) == (told,)
    assert warned(replace(short, retention_ms=30 * DAY_MS)) == ()
