"""Simulation of a stable lane and its forks over steady time, with partitions that stay away.

Each partition gets a record now and then; it may be behind the others, stop for a while and deliver
what it has kept then, or be on a broker that does not answer. The stable lane and its fork plan
their batches by `next_batch`; `fork_phases` decides when a fork begins, publishes and ends, as in
`LaneForks`. The results are a model of a box: each has an event time at which it is released, and
depends on the records that were read until then.
"""

from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pipeline.availability import Policy
from pipeline.boundaries.deadline import RESOLUTION
from pipeline.boundaries.lane_time import (
    STABLE,
)
from pipeline.lanes.fork_phases import (
    ForkPhase,
)
from pipeline.network.boxes.shape import Shape
from pipeline.tentative.generation import Generation
from tests.profiles import examples
from tests.unit.boundaries.fork_simulation import (
    BATCH_MS,
    HOW,
    SHAPES,
    TICK_MS,
    USUAL_MS,
    X_MS,
    Away,
    Released,
    Run,
    Scenario,
    result_ms,
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """One to three partitions, of which some stay away; small and large skews."""
    count = draw(st.integers(1, 3))
    behind = draw(st.lists(st.sampled_from((0, 0, 1, 5, 20, 60)), min_size=count, max_size=count))
    failures = draw(
        st.lists(
            st.builds(
                Away,
                st.integers(0, count - 1),
                st.integers(10, 110),
                st.one_of(st.integers(1, 60), st.integers(25, 45)),
                st.booleans(),
            ),
            max_size=3,
        )
    )
    return Scenario(
        draw(st.sampled_from(SHAPES)),
        tuple(behind),
        tuple(failures),
        draw(st.sampled_from((Policy.PROCESS, Policy.PROCESS, Policy.DELAY))),
        draw(st.sampled_from((1_000, 1_000, 20))),
    )


LONG = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@LONG
@given(scenarios())
def test_forks_of_any_scenario(scenario: Scenario) -> None:
    """What holds whatever happens to the partitions."""
    run = Run(scenario).go()
    forks = run.forks
    event(f"forks: {min(len(forks.begun), 3)}, published: {bool(forks.published)}")
    check_stable_lane(run)
    check_causes(run)
    check_first_results(run)
    check_available(run)
    check_settled(run)


def check_stable_lane(run: Run) -> None:
    """Its decisions and results are those without forks."""
    alone = Run(run.scenario, with_forks=False).go()
    assert run.stable.decisions == alone.stable.decisions
    assert run.results == alone.results
    assert run.stable.time.steered == STABLE
    assert max(Counter(one.id for one in run.results).values()) == 1


def check_causes(run: Run) -> None:
    """A fork begins only if a partition has been missing for half of the bound."""
    for now, causes in run.forks.begun:
        assert causes
        assert run.missing_for(now) >= X_MS // 2 - X_MS // 50


def check_first_results(run: Run) -> None:
    """Nothing is tentative before a partition has been missing for 0.9 of the bound."""
    first: dict[Generation, Released] = {}
    for generation, one in run.forks.published:
        first.setdefault(generation, one)
    for one in first.values():
        moments = (one.there_ms, one.there_ms - BATCH_MS)  # it may be back while the batch runs
        assert max(map(run.missing_for, moments)) >= round(0.9 * X_MS) - X_MS // 50


def check_available(run: Run) -> None:
    """Results of a partition that is alive are there within the bound beyond the usual latency.

    While the stable lane is behind, this says nothing. What else becomes missing is waited for
    again, once the fork is ready.
    """
    within_ms = X_MS + USUAL_MS
    is_skewed = max(run.scenario.behind) * TICK_MS > X_MS // 2  # a cause by itself
    if len(run.scenario.failures) + is_skewed > 1:
        within_ms += X_MS + HOW.ready_ms
    there: dict[int, int] = {}
    for one in (*run.results, *(one for _, one in run.forks.published)):
        there[one.at_ms] = min(one.there_ms, there.get(one.at_ms, one.there_ms))
    shape = run.scenario.shape
    for at_ms in sorted({result_ms(shape, time) for n in run.alive for time in run.logs[n]}):
        needed_ms = at_ms + shape.behind_ms - shape.watermark_lead_ms
        wanted_ms = next((now for now, newest in run.seen if newest > needed_ms), None)
        if wanted_ms is None:
            continue
        for now, level_ms in run.level:
            if level_ms is not None and now >= max(wanted_ms, level_ms) + within_ms:
                assert there.get(at_ms, now + 1) <= now
                break


def check_settled(run: Run) -> None:
    """Each tentative result once: its id is stable, or undone; generations end once."""
    forks = run.forks
    counts = forks.outcomes
    assert forks.settling.unsettled == ()
    settled = counts["confirmed"] + counts["replaced"] + counts["superseded"] + len(forks.undone)
    assert settled == counts["published"]
    stable = {one.id for one in run.results}
    tentative = {one.id for _, one in forks.published}
    assert set(forks.undone) == tentative - stable
    assert set(Counter(forks.undone).values()) <= {1}
    assert Counter(forks.done) == Counter({of for of, _ in forks.published})


def test_a_partition_that_is_always_a_little_behind_keeps_no_fork() -> None:
    """After it was away, what is tentative ends, although its records come late as before."""
    run = Run(Scenario(SHAPES[0], (0, 15), (Away(1, 30, 50, answers=True),)))
    for tick in range(run.scenario.ticks):
        run.tick(tick)
    assert run.forks.published
    assert run.forks.phase is ForkPhase.ABSENT
    assert len(run.forks.begun) == 1


@LONG
@given(
    st.sampled_from(SHAPES),
    st.lists(st.sampled_from((0, 1, 5, 15)), min_size=1, max_size=3),
    st.integers(0, 18),
    st.booleans(),
)
def test_small_skews_and_short_failures_begin_no_fork(
    shape: Shape,
    behind: list[int],
    ticks: int,
    answers: bool,  # noqa: FBT001 - drawn
) -> None:
    """As long as nothing is missing for half of the bound."""
    ticks = max(0, ticks - max(behind))
    failures = tuple(Away(n, 30 + 40 * n, ticks, answers) for n in range(len(behind)))
    run = Run(Scenario(shape, tuple(behind), failures)).go()
    assert run.forks.begun == []
    assert run.results


AWAY_TICKS, ALTERNATING_TICKS, OPEN_MOST = 60, 2_000, 40
"""Each cause lasts 6 s, one and a half times the bound, and all of them 50 times the bound, as an
hour has bounds of 72 s. A window has one result, and so many windows end until one is settled."""


@pytest.mark.parametrize(
    ("policy", "apart", "answers"),
    [(Policy.PROCESS, 0, True), (Policy.PROCESS, 25, False), (Policy.DELAY, 0, True)],
)
def test_two_causes_in_alternation(
    policy: Policy,
    apart: int,
    answers: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Each begins as the other one ends, or soon after: all is settled, and nothing adds up."""
    begins = range(50, ALTERNATING_TICKS - AWAY_TICKS, AWAY_TICKS + apart)
    failures = tuple(
        Away(turn % 2, begin, AWAY_TICKS, answers) for turn, begin in enumerate(begins)
    )
    run = Run(Scenario(SHAPES[0], (0, 0, 0), failures, policy, ticks=ALTERNATING_TICKS))
    forks, most_open = run.forks, 0
    for tick in range(ALTERNATING_TICKS):
        run.tick(tick)
        most_open = max(most_open, forks.settling.open_results)
        assert len(forks.watch.moments) <= RESOLUTION + 4
    assert len(forks.begun) >= len(failures) // 2
    assert {one for _, causes in forks.begun for one in causes} == {0, 1}
    assert most_open <= OPEN_MOST
    run.finish()
    check_stable_lane(run)
    check_causes(run)
    check_settled(run)
    assert forks.done == sorted(forks.done)
