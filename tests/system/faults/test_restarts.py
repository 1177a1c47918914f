"""Clean restarts: every lane continues from its checkpoint, whatever its state."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.cases.behind_unions import behind_unions
from tests.faults.world import Worlds
from tests.system.faults.conftest import Strike

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

RESTARTS = ("pause_lanes", "stop_node")
GROUPS = (
    ("deduplicate",),
    ("window", "outer_join"),
    ("sessions", "sliding", "as_of"),
    ("top", "join", "left_join"),
)
"""Cases after a union: the checkpoint has more sources than the box has inputs."""
OTHERS = pytest.mark.second_tier(
    "the spark stage compares what Spark writes down of a batch for each of these boxes"
)
PER_SECOND = 30
"""Few cases and few records at once, so that a busy machine starts them all in time."""


def _slow(case: Case) -> Case:
    return replace(case, per_second=PER_SECOND)


@pytest.mark.parametrize(
    "names",
    [pytest.param(names, marks=OTHERS if at else ()) for at, names in enumerate(GROUPS)],
    ids=", ".join,
)
def test_a_clean_restart_rebuilds_no_state(
    worlds: Worlds, strike: Strike, names: Sequence[str]
) -> None:
    """Neither a restart of one lane nor of the whole node; results are exact."""
    cases = [_slow(behind_unions(CASES[name])) for name in names]
    node = worlds.get().node
    report = strike(cases, RESTARTS)
    networks = "|".join(verdict.network for verdict in report.verdicts)
    log = node.log.read_text(errors="replace")
    starts = re.findall(rf"\[(?:{networks})\.\w+\] starting version", log)
    assert len(starts) == len(cases) * (1 + len(RESTARTS))
    assert re.findall(rf"\[(?:{networks})\.\w+\].*rebuilding the state.*", log) == []
