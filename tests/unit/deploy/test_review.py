from dataclasses import replace

from pipeline.deploy.review import Surroundings, review
from pipeline.network.model import Network
from pipeline.planner.changes import Current
from pipeline.planner.diff import changes
from pipeline.planner.planner import plan
from tests.unit.planner.networks import (
    OWNER,
    aggregated,
    as_of_join,
    column,
    external,
    filtered,
    network,
)

DAY_MS = 86_400_000
CARS, OWNERS = external("cars", column("car")), external("owners", column("car"))


def warned(of: Network) -> tuple[str, ...]:
    """What a first deploy warns of."""
    planned, nothing = plan(of, OWNER), Current()
    found = changes(planned, None, nothing)
    return review(planned, found, Surroundings(nothing), {}).warnings


def test_topics_that_forget_what_a_box_keeps_are_told() -> None:
    """The table, for of the rows only those are kept that wait; not when it is kept as long."""
    box = as_of_join("owned", CARS, OWNERS, (("car", "car"),), {"car": "`left`.`car`"}, 30 * DAY_MS)
    short = network((CARS, OWNERS), (box,))
    told = (
        "owned keeps what lies up to 30d 5s back, topic owners-topic for 7d: state that is lost "
        "could not be built again; write a longer retention"
    )
    assert warned(short) == (told,)
    assert warned(replace(short, retention_ms=30 * DAY_MS + 5_000)) == ()
    table = replace(OWNERS, retention_ms=30 * DAY_MS + 5_000)
    assert warned(replace(short, streams=(CARS, table))) == ()


def test_windows_are_kept_as_much_longer_as_records_may_be_late() -> None:
    """By the most patient input, and as well behind a fragment that reads it and keeps nothing."""
    patient = replace(CARS, lateness_ms=30 * DAY_MS)
    passed = filtered("passed", patient, "`car` > 0")
    counted = aggregated("counted", passed, {"car": "`car`"}, {"n": ("count", "`car`")})
    told = (
        "counted keeps what lies up to 30d 1m back, topic {} for 7d: state that is lost could not "
        "be built again; write a longer retention"
    )
    assert warned(network((patient,), (passed, counted))) == (told.format("cars-topic"),)
    behind = network((patient,), (passed, counted), outputs=("passed", "counted"))
    assert warned(behind) == (told.format("passed-out"),)
    assert warned(replace(behind, retention_ms=31 * DAY_MS)) == ()
