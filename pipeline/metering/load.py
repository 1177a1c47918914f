"""Load of a node and its fragments, in load units: 1 % of a reference core for a second.

A core is as fast as the reference core if it does the calibration in the same time; `CoreSpeed`
converts the CPU time of another one. How fast a core is depends on what it computes, so one number
is an approximation between different processors, and exact between equal ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.ids import FragmentId
from pipeline.metering.accounting import Account, Charge
from pipeline.metering.readings import Flow

UNIT_NS: Final = 10_000_000
"""CPU time of a reference core that is one load unit."""
REFERENCE_NS: Final = 2_500_000
"""CPU time of one round of the calibration on a reference core: zlib compresses 52 MB in a second.
Chosen so that one core of the machine of the first measurements (AMD EPYC, 2026) is one."""
_MILLI: Final = 1_000


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """Speed of a core in thousandths of the reference core's."""

    permille: int

    @classmethod
    def measured(cls, round_ns: Sequence[int]) -> "CoreSpeed":
        """From the CPU times of some rounds of the calibration: the least is the least disturbed.

        Args:
            round_ns: at least one.
        """
        return cls(max(1, round(_MILLI * REFERENCE_NS / max(1, min(round_ns)))))

    def milli(self, cpu_ns: int) -> int:
        """CPU time in thousandths of a load unit, rounded down."""
        return cpu_ns * self.permille // UNIT_NS

    def milli_per_s(self, cpu_ns: int, span_ms: int) -> int:
        """Thousandths of a load unit for each second, of CPU time in a span of time."""
        return round(cpu_ns * self.permille * _MILLI / (UNIT_NS * span_ms)) if span_ms > 0 else 0


@dataclass(frozen=True, slots=True)
class Use:
    """What a fragment was charged in a span of time, and what it read and wrote."""

    charge: Charge
    flow: Flow


@dataclass(frozen=True, slots=True)
class Usage:
    """What was charged between two accounts.

    Args:
        span_ms: time between them.
        uses: of each fragment that has run in it.
        overhead_ns: of the node.
        total_ns: CPU time of all processes.
    """

    span_ms: int
    uses: Mapping[FragmentId, Use]
    overhead_ns: int
    total_ns: int


def usage(before: Account, after: Account) -> Usage:
    """What was charged between two accounts of one node."""
    earlier, later = before.reading, after.reading
    uses = {}
    for at, charge in sorted(after.charges.items()):
        spent = charge.since(before.charges.get(at, Charge()))
        known = earlier.lanes.get(at)
        flow = later.lanes[at].flow.since(Flow() if known is None else known.flow)
        if spent.total_ns or flow != Flow():
            uses[at] = Use(spent, flow)
    return Usage(
        later.at_ms - earlier.at_ms,
        uses,
        after.overhead_ns - before.overhead_ns,
        later.processes.total_ns - earlier.processes.total_ns,
    )
