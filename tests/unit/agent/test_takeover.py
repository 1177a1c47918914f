"""The parts of a takeover."""

from dataclasses import replace

import pytest

from pipeline.agent.suspicions import BY_SESSION, Noticed
from pipeline.agent.takeover import PARTS, Takeover, takeover
from pipeline.catalog.fragment_owners import Claim
from pipeline.catalog.records import OwnerRecord
from pipeline.ids import Epoch, Millis, NodeId, SteadyMillis
from tests.unit.planner.networks import OWNER

HERE, THERE = NodeId("node1"), NodeId("node2")
AT = SteadyMillis(3_000)
THEIRS = OwnerRecord(THERE, OWNER, Epoch(1), Millis(0), Millis(5))
SILENT = Noticed("silent", SteadyMillis(2_800), SteadyMillis(1_500))
WHOLE = Takeover(
    THERE,
    "node node2 is down",
    SILENT,
    AT,
    SteadyMillis(3_050),
    first_batch_ms=SteadyMillis(3_400),
    first_result_ms=SteadyMillis(3_400),
)


@pytest.mark.parametrize(
    ("before", "is_takeover"),
    [(None, False), (replace(THEIRS, node=HERE), False), (THEIRS, True)],
)
def test_only_what_another_node_owned_is_taken_over(
    before: OwnerRecord | None, *, is_takeover: bool
) -> None:
    """Not what had no owner, and not what an earlier life of this node owned."""
    assert (takeover(Claim(Epoch(2), before, None), HERE, None, AT) is not None) == is_takeover


def test_its_reason_is_that_of_the_claim() -> None:
    """A suspicion may have been wrong."""
    found = takeover(Claim(Epoch(2), THEIRS, None, on_suspicion=True), HERE, SILENT, AT)
    assert found == Takeover(THERE, "node node2 is suspected to have failed", SILENT, AT)


def test_its_parts_follow_each_other() -> None:
    """They add up to the time from the last sign of the owner to the first result."""
    parts = WHOLE.parts_ms
    assert tuple(name for name, _ in parts) == PARTS
    assert [length for _, length in parts] == [1_300, 200, 50, 350, 0]


@pytest.mark.parametrize(
    ("taken", "missing"),
    [
        (replace(WHOLE, first_result_ms=None), {"first_result"}),
        (replace(WHOLE, noticed=None), {"noticed", "claimed"}),
        (replace(WHOLE, noticed=Noticed(BY_SESSION, SteadyMillis(2_800))), {"noticed"}),
    ],
)
def test_what_is_not_known_is_left_out(taken: Takeover, missing: set[str]) -> None:
    """The other parts are the same."""
    assert dict(taken.parts_ms) == {
        name: length for name, length in WHOLE.parts_ms if name not in missing
    }
