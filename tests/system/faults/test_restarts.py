"""A restart without any fault: every lane goes on from its checkpoint, whatever state it keeps."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.cases.behind_unions import behind_unions
from tests.faults.scenario import run
from tests.faults.strikes import FAULTS
from tests.faults.world import Worlds

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

RESTARTS = ("pause_lanes", "stop_node")
GROUPS = (
    ("sessions", "deduplicate", "as_of"),
    ("window", "sliding", "top"),
    ("join", "outer_join", "left_join"),
)
PER_SECOND = 30
"""Few cases at once, and few records, so that a busy machine starts them all in time."""


PLAIN = pytest.mark.second_tier("the same boxes behind unions, whose checkpoints have more sources")


def _slow(case: Case) -> Case:
    return replace(case, per_second=PER_SECOND)


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(
            [_slow(form(CASES[name])) for name in names],
            id=f"{', '.join(names)}{where}",
            marks=marks,
        )
        for form, where, marks in (
            (lambda case: case, "", PLAIN),
            (behind_unions, " behind unions", ()),
        )
        for names in GROUPS
    ],
)
def test_a_clean_restart_rebuilds_no_state(worlds: Worlds, cases: Sequence[Case]) -> None:
    """Neither of one lane nor of the whole node; and what comes is exact."""
    world = worlds.get()
    node = world.node
    report = run(world, cases, [FAULTS[name] for name in RESTARTS], 1, print)
    assert not report.findings, report.words()
    assert all(verdict.expected for verdict in report.verdicts)
    names = "|".join(verdict.network for verdict in report.verdicts)
    log = node.log.read_text(errors="replace")
    starts = re.findall(rf"\[(?:{names})\.\w+\] starting version", log)
    assert len(starts) == len(cases) * (1 + len(RESTARTS))
    assert re.findall(rf"\[(?:{names})\.\w+\].*rebuilding the state.*", log) == []
