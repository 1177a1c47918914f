"""Tentative results of a fragment, as text and data."""

from dataclasses import replace

import pytest

from brokers.versioned_store import Set
from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.catalog.codec import encode
from pipeline.catalog.fragment_status import LaneState
from pipeline.cli.tentative_view import (
    tentative_data,
    tentative_problem,
    tentative_text,
    waits_data,
    waits_text,
)
from pipeline.clock import rfc3339
from pipeline.ids import FragmentName, Millis
from pipeline.lanes.fork_phases import ForkPhase
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.cli.reports import CARS, Caller, deployed, report
from tests.unit.deploy.twins import World

NOW = NOTHING_READ.reported_at_ms
PUBLISHING = replace(
    NOTHING_READ,
    tentative=ForkPhase.PUBLISHING,
    tentative_since_ms=Millis(NOW - 12_000),
    tentative_held_since_ms=Millis(NOW - 15_000),
    tentative_missing=("car-sightings/1",),
    tentative_generation="3.1",
    tentative_published=1_200,
    tentative_open=1_200,
)


@pytest.mark.parametrize(
    ("phase", "open_results", "text"),
    [
        (None, 0, "-"),
        (ForkPhase.ABSENT, 0, "-"),
        (ForkPhase.ABSENT, 20, "settling 20"),
        (ForkPhase.PREPARING, 0, "preparing"),
        (ForkPhase.READY, 0, "ready"),
        (ForkPhase.READY, 20, "ready; 20 open"),
        (ForkPhase.RESTING, 1_200, "failed; 1,200 open"),
        (
            ForkPhase.PUBLISHING,
            1_200,
            "publishing for 12.0s: car-sightings/1 is missing; 1,200 open",
        ),
        (ForkPhase.PUBLISHING, 0, "publishing for 12.0s: car-sightings/1 is missing"),
    ],
)
def test_the_text_has_phase_cause_and_open_results(
    phase: ForkPhase | None, open_results: int, text: str
) -> None:
    """A fragment without a fork and without open results has nothing to say."""
    found = replace(PUBLISHING, tentative=phase, tentative_open=open_results)
    assert tentative_text(found) == text


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ((), "nothing is missing any more"),
        (("a/0", "a/1"), "a/0, a/1 are missing"),
        (tuple(f"a/{n}" for n in range(5)), "a/0, a/1, a/2 and 2 more are missing"),
    ],
)
def test_the_first_missing_partitions_are_named(missing: tuple[str, ...], text: str) -> None:
    """While the stable lane reads what has come, none is."""
    assert text in tentative_text(replace(PUBLISHING, tentative_missing=missing))


def test_a_failure_has_a_reason() -> None:
    """On one line, as long as the fork rests."""
    failed = replace(PUBLISHING, tentative=ForkPhase.RESTING, tentative_problem="no\nroom")
    assert tentative_problem(failed) == "tentative results failed: no room"
    assert tentative_problem(replace(failed, tentative=ForkPhase.ABSENT)) == ""
    both = replace(failed, tentative_unsettled="no\nleader")
    assert tentative_problem(both) == (
        "tentative results failed: no room; tentative results are not settled: no leader"
    )


def test_data_has_everything() -> None:
    """Null for a fragment without tentative results."""
    assert tentative_data(NOTHING_READ) is None
    found = tentative_data(PUBLISHING)
    assert found == {
        "phase": "publishing",
        "since": rfc3339(Millis(NOW - 12_000)),
        "held_since": rfc3339(Millis(NOW - 15_000)),
        "missing": ["car-sightings/1"],
        "generation": "3.1",
        "published": 1_200,
        "confirmed": 0,
        "replaced": 0,
        "undone": 0,
        "open": 1_200,
        "problem": "",
        "unsettled": "",
    }


def test_waits_have_their_numbers() -> None:
    """And nothing is said of what was not measured."""
    waits = UsualWaits(84, 2_600, 71_000)
    assert waits_text(waits) == (
        "results wait up to 2.6s for the last partition in 95 % of 84 minutes, and up to 1m11s in "
        "all of them"
    )
    assert waits_data(None) is None


def test_a_fragment_that_does_not_run_keeps_the_column(medusa: Caller) -> None:
    """Its record has it."""
    world = World.new()
    connect = deployed(medusa, world)
    path = world.catalog.fragments.records.znodes.fragment(CARS, FragmentName("moving"))
    record = next(one for one in world.catalog.fragments.of(CARS) if one.fragment == "moving")
    stored = world.store.get(path)
    assert stored is not None
    changed = encode(replace(record, may_be_tentative=True))
    world.store.apply((Set(path, changed, stored.version),))
    head, row, *_ = medusa("status", opener=connect).out.splitlines()
    assert row[head.lower().index("tentative") :].split()[0] == "-"


def test_status_has_a_column_if_a_fragment_may_have_some(medusa: Caller) -> None:
    """Others have `-` in it; without such a fragment there is none."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    assert "tentative" not in medusa("status", opener=connect).out
    status = world.catalog.statuses.get(CARS, FragmentName("moving"))
    assert status is not None
    ready = replace(status, tentative=ForkPhase.READY, tentative_since_ms=NOW)
    world.catalog.statuses.report(ready)
    world.catalog.statuses.report(replace(ready, waits=UsualWaits(84, 2_600, 7_100)))
    head, row, *_ = medusa("status", opener=connect).out.splitlines()
    assert row[head.lower().index("waits") :].split()[0] == "2.6s"
    assert row[head.lower().index("tentative") :].split()[0] == "ready"
    data = medusa("status", "-o", "json", opener=connect).data["fragments"][0]
    assert data["tentative"]["phase"] == "ready"
    assert data["waits"] == {"usual_ms": 2_600, "longest_ms": 7_100, "minutes": 84}
    world.catalog.statuses.report(
        replace(ready, tentative=ForkPhase.RESTING, tentative_problem="no room")
    )
    assert "tentative results failed: no room" in medusa("status", opener=connect).out
