"""Steps of lanes, their limits, and how many fit into a heartbeat."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.heartbeats.steps import (
    LIMITS_MS,
    Doing,
    LaneStep,
    StepAge,
    decode_steps,
    encode_steps,
)
from tests.unit.deploy.twins import TwinClock

many = st.lists(
    st.builds(
        StepAge,
        st.from_regex(r"[a-z]{1,9}\.[a-z]{1,9}", fullmatch=True),
        st.sampled_from(Doing),
        st.integers(0, 10**9),
    ),
    max_size=30,
    unique_by=lambda one: one.fragment,
)


def test_a_rebuild_is_a_step_of_its_own() -> None:
    """After it the start goes on."""
    clock = TwinClock()
    step = LaneStep(clock)
    with step.during(Doing.REBUILD):
        clock.sleep(1.0)
        assert step.age == (Doing.REBUILD, 1_000)
    assert step.age == (Doing.QUERY, 0)


@pytest.mark.parametrize("doing", Doing)
def test_a_step_is_overdue_after_its_limit(doing: Doing) -> None:
    """A rebuild never is; neither is a step that this version does not know."""
    limit_ms = LIMITS_MS.get(doing)
    if doing is Doing.REBUILD:
        assert limit_ms is None
    else:
        assert limit_ms is not None
        assert not StepAge("tolls.moving", doing, limit_ms).is_overdue
        assert StepAge("tolls.moving", doing, limit_ms + 1).is_overdue
    assert not StepAge("tolls.moving", "colour", 10**9).is_overdue


def test_a_batch_that_takes_long_is_shown_as_such() -> None:
    """And not as a thread that hangs."""
    assert StepAge("f", Doing.BATCH, 95_123).words == "one batch has taken 1m 35s so far"
    assert "it hangs" in StepAge("f", Doing.WAIT, 95_123).words


@given(many, st.integers(2, 400))
def test_too_many_steps_are_the_oldest_ones(steps: list[StepAge], bytes_max: int) -> None:
    """As many as fit: one more would be too many."""
    encoded = encode_steps(steps, bytes_max)
    kept = decode_steps(json.loads(encoded))
    oldest = sorted(steps, key=lambda one: -one.age_ms)
    assert list(kept) == oldest[: len(kept)]
    assert len(encoded) <= bytes_max
    if len(kept) < len(steps):
        assert len(encode_steps(oldest[: len(kept) + 1])) > bytes_max


def test_two_lanes_of_a_fragment_are_the_older_one() -> None:
    """The one before has not ended yet."""
    older, newer = StepAge("f", "batch", 70), StepAge("f", "wait", 3)
    assert decode_steps(json.loads(encode_steps((newer, older)))) == (older,)
