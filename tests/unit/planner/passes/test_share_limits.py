from dataclasses import replace

from pipeline.network.model import Limit, Network, Origin
from pipeline.planner.digest import fragment_digest, state_digest
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, column, external, filtered, mapped, network, python

SOURCE = external("s", column("a"))
MOVING = filtered("moving", SOURCE, "`a` > 0")
FAST = mapped("fast", MOVING, {"x": "`a`"})
SLOW = mapped("slow", MOVING, {"x": "`a` + 1"})


def written(name: str) -> Origin:
    """As the document's reader creates it."""
    return Origin(name, "where")


def _fragments(*limits: Limit) -> dict[str, Fragment]:
    moving = replace(MOVING, where=replace(MOVING.where, origin=written("moving")))
    slow = replace(
        SLOW,
        select=tuple(
            replace(c, expression=replace(c.expression, origin=written("slow")))
            for c in SLOW.select
        ),
    )
    document: Network = network((SOURCE,), (moving, FAST, slow), ("fast", "slow"))
    return {str(f.name): f for f in plan(replace(document, limits=limits), OWNER).fragments}


def test_a_limit_applies_to_each_fragment_of_its_stream_or_box() -> None:
    """A filter that is copied into two fragments has its limit in both."""
    limits = (Limit("s", 3), Limit("moving", 2, 1_000), Limit("slow", 1))
    found = _fragments(*limits)
    assert found["fast"].limits == limits[:2]
    assert found["slow"].limits == limits


def test_a_limit_of_a_function_applies_where_it_is_called() -> None:
    """It has no expression that could fail, and refuses records all the same."""
    document = network((SOURCE,), (python("doubled", SOURCE), MOVING), ("doubled", "moving"))
    limit = Limit("doubled", 5)
    found = plan(replace(document, limits=(limit,)), OWNER).fragments
    assert {str(f.name): f.limits for f in found} == {"doubled": (limit,), "moving": ()}


def test_a_changed_limit_is_another_plan_and_the_same_state() -> None:
    """So a deploy starts the fragment again, and it continues at its positions."""
    plain, limited = _fragments()["fast"], _fragments(Limit("s", 3))["fast"]
    higher = _fragments(Limit("s", 4))["fast"]
    assert len({fragment_digest(f) for f in (plain, limited, higher)}) == 3
    assert len({state_digest(f) for f in (plain, limited, higher)}) == 1
