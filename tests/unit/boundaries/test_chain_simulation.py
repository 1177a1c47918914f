"""Simulation of lanes in a chain, with partitions of the first one that stay away."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pipeline.availability import Policy
from pipeline.boundaries.lane_time import STABLE
from pipeline.lanes.fork_phases import ForkPhase
from tests.profiles import examples
from tests.unit.boundaries.chain_simulation import Chain, Link, ReadersForks
from tests.unit.boundaries.fork_simulation import SHAPES, X_MS, Away, Scenario

LONG = settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
CUT = Scenario(SHAPES[0], (0, 0), (Away(1, 40, 90, answers=True),), ticks=160)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Two partitions, of which some stay away; small and large skews."""
    behind = draw(st.lists(st.sampled_from((0, 0, 1, 5, 20, 60)), min_size=2, max_size=2))
    away = st.builds(
        Away, st.integers(0, 1), st.integers(10, 110), st.integers(1, 80), st.booleans()
    )
    policy = draw(st.sampled_from((Policy.PROCESS, Policy.PROCESS, Policy.DELAY)))
    failures = tuple(draw(st.lists(away, max_size=3)))
    shape = draw(st.sampled_from((SHAPES[0], SHAPES[2])))
    return Scenario(shape, tuple(behind), failures, policy, draw(st.sampled_from((1_000, 20))))


def check(chain: Chain) -> None:
    """Stable results are those without forks; each tentative one is settled, once."""
    alone = Chain(chain.scenario, with_forks=False, passing=chain.passing).go()
    restarted = {number for _, number in chain.restarts}
    for number, (link, same) in enumerate(zip(chain.links, alone.links, strict=True), start=1):
        assert link.results == same.results
        assert link.stable.time.steered == STABLE
        assert not link.stable.time.taken
        check_settled(link)
        if number not in restarted:  # else what was settled before is counted again
            check_counts(link.forks)


def check_settled(link: Link) -> None:
    """Each tentative result of a lane once, and each of its generations."""
    forks = link.forks
    assert forks.settling.unsettled == ()
    stable = {one.id for one in link.results}
    assert set(forks.undone) == {one.id for _, one in forks.published} - stable
    assert set(forks.done) >= {of for of, _ in forks.published}
    assert set(Counter(forks.done).values()) <= {1}, "also one of which all results were refused"


def check_counts(forks: ReadersForks) -> None:
    """Each tentative result has one outcome."""
    counts = forks.outcomes
    settled = counts["confirmed"] + counts["replaced"] + counts["superseded"] + len(forks.undone)
    assert settled == counts["published"]


@LONG
@given(
    scenarios(),
    st.lists(st.tuples(st.integers(50, 140), st.integers(0, 2)), max_size=2),
    st.integers(0, 2),
)
def test_forks_of_any_scenario(
    scenario: Scenario, restarts: list[tuple[int, int]], passing: int
) -> None:
    """No result counts twice, stable or tentative: the lanes assert that as they read."""
    known = tuple((tick, min(number, passing + 1)) for tick, number in restarts)
    chain = Chain(scenario, restarts=known, passing=passing).go()
    forks = chain.last.forks
    event(f"published: {bool(forks.published)}, outdated: {min(forks.outdated, 2)}")
    check(chain)


@pytest.mark.parametrize("passing", [0, 2])
def test_tentative_results_pass_through(passing: int) -> None:
    """Within the bound beyond the latency of the lanes: the waits overlap."""
    chain = Chain(CUT, passing=passing).go()
    check(chain)
    forks = chain.last.forks
    published = forks.published
    assert published
    first = chain.first.forks.published[0][1]
    assert published[0][1].there_ms - first.there_ms < X_MS // 2
    last_ms = max(one.at_ms for _, one in published)
    assert {one.at_ms for _, one in published} == set(
        range(published[0][1].at_ms, last_ms + 1, 1_000)
    )
    assert {forks.parts[one.id] for _, one in published} == {2}, "each count once"
    late = [one.there_ms for _, one in published if one.there_ms > published[0][1].there_ms]
    assert len(late) > 3
    assert len(forks.begun) == 1
    assert forks.phase is ForkPhase.ABSENT


def test_lanes_without_state_pass_on_what_is_tentative_alone() -> None:
    """Each tentative result has the id of the one that it was made of, and none is before it."""
    chain = Chain(CUT, passing=2).go()
    made = {one.id: one for _, one in chain.first.forks.published}
    for link in chain.links[:-1]:
        published = [one for _, one in link.forks.published]
        assert published
        assert {one.id for one in published} <= made.keys()
        assert all(one.there_ms >= made[one.id].there_ms for one in published)
        assert [one.at_ms for one in published] == sorted(one.at_ms for one in published)


@pytest.mark.parametrize(("restarted", "passing"), [(0, 0), (1, 1)])
def test_a_fork_begins_anew_with_the_generation_that_it_reads(restarted: int, passing: int) -> None:
    """The owner upstream is restarted while both publish: each generation is settled."""
    longer = Scenario(SHAPES[0], (0, 0), (Away(1, 40, 160, answers=True),), ticks=220)
    chain = Chain(longer, restarts=((100, restarted),), passing=passing).go()
    check(chain)
    forks = chain.last.forks
    before = (chain.first.forks, *(one.forks for one in chain.links))[restarted]
    assert len({of for of, _ in before.published}) == 2
    assert len({of for of, _ in forks.published}) == 2
    assert forks.outdated
    assert {forks.parts[one.id] for _, one in forks.published} == {2}


def test_without_a_failure_no_fork_begins() -> None:
    """Nor for a short one."""
    short = Scenario(SHAPES[0], (0, 5), (Away(1, 30, 15, answers=False),))
    chain = Chain(short, passing=1).go()
    assert [one.forks.begun for one in chain.links] == [[], []]
    assert chain.last.results
