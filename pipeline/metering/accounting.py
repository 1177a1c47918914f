"""Accounting of CPU time: each reading's increase is charged to fragments, or to the node.

What is measured of a fragment is charged to it: the Java thread of its queries, the tasks of its
jobs, the Python threads of its lanes. What runs for fragments in common is shared:

- the rest of the Java process (scheduling, calls from and to Python, serving of results,
  compilation, garbage collection) in proportion to their planning and writing: most of it is what
  each batch takes, however much its tasks compute;
- Python processes of Spark's tasks, in proportion to the tasks of the fragments that have Python
  functions;
- threads of Kafka clients, in proportion to writing.

What would run without any fragment is overhead of the node: the agent, polls of the catalog and of
topics, heartbeats, metering. So is what no fragment has caused, as Java's warm-up on an idle node.

No time is charged twice or lost: charges and overhead together are the CPU time of the processes
and `debt_ns`. Tasks are counted when their stage has ended, so an increase may contain less Java
time than tasks; the difference, the debt, is taken from the rest of later increases.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from pipeline.errors import BrokenInvariantError
from pipeline.ids import FragmentId
from pipeline.metering.readings import LaneUse, ProcessTimes, Reading

_NOTHING = LaneUse()


@dataclass(frozen=True, slots=True)
class Charge:
    """CPU time that a fragment is charged, in ns; `planning_ns` to `writing_ns` as in `LaneUse`.

    Args:
        functions_ns: its share of the Python processes of tasks.
        shared_ns: its share of what runs for all fragments.
    """

    planning_ns: int = 0
    tasks_ns: int = 0
    writing_ns: int = 0
    functions_ns: int = 0
    shared_ns: int = 0

    @property
    def total_ns(self) -> int:
        """All of it."""
        parts = self.planning_ns, self.tasks_ns, self.writing_ns, self.functions_ns
        return sum(parts) + self.shared_ns

    def plus(self, other: "Charge") -> "Charge":
        """The sum."""
        names = [one.name for one in fields(self)]
        return Charge(*(getattr(self, name) + getattr(other, name) for name in names))

    def since(self, before: "Charge") -> "Charge":
        """The difference."""
        names = [one.name for one in fields(self)]
        return Charge(*(getattr(self, name) - getattr(before, name) for name in names))


@dataclass(frozen=True, slots=True)
class Account:
    """What was charged from the first reading up to one.

    Args:
        reading: the last reading.
        charges: to each fragment.
        overhead_ns: of the node.
        debt_ns: time that was charged, and that no increase of the processes contained yet.
    """

    reading: Reading
    charges: Mapping[FragmentId, Charge] = field(default_factory=lambda: MappingProxyType({}))
    overhead_ns: int = 0
    debt_ns: int = 0

    def after(self, reading: Reading) -> "Account":
        """The account with the increase up to a reading.

        Raises:
            BrokenInvariantError: a counter has decreased.
        """
        before = self.reading
        grown = _grown_processes(before.processes, reading.processes)
        lanes = {
            one: _grown_lane(one, before.lanes.get(one, _NOTHING), use)
            for one, use in sorted(reading.lanes.items())
        }
        common, debt_ns = _common(
            grown, lanes.values(), self.debt_ns, remote_tasks=reading.remote_tasks
        )
        batches = {at: use.planning_ns + use.writing_ns for at, use in lanes.items()}
        java = shares(common.java_ns, batches)
        python = {at: u.tasks_ns for at, u in lanes.items() if u.uses_python}
        functions = shares(grown.functions_ns, python)
        clients = shares(common.clients_ns, {at: u.writing_ns for at, u in lanes.items()})
        charges = dict(self.charges)
        for at, use in lanes.items():
            shared_ns = java.get(at, 0) + clients.get(at, 0)
            own = use.planning_ns, use.tasks_ns, use.writing_ns
            charge = Charge(*own, functions.get(at, 0), shared_ns)
            charges[at] = charges.get(at, Charge()).plus(charge)
        unshared_ns = common.java_ns + grown.functions_ns + common.clients_ns
        unshared_ns -= sum(sum(part.values()) for part in (java, functions, clients))
        overhead_ns = self.overhead_ns + common.node_ns + grown.other_ns + unshared_ns
        return Account(reading, MappingProxyType(charges), overhead_ns, debt_ns)


@dataclass(frozen=True, slots=True)
class _Common:
    """What an increase contains besides what was measured of fragments, in ns.

    Args:
        java_ns: of the Java process.
        clients_ns: of the threads of Kafka clients.
        node_ns: of the node's process without both.
    """

    java_ns: int
    clients_ns: int
    node_ns: int


def _common(
    grown: ProcessTimes, lanes: Iterable[LaneUse], debt_ns: int, *, remote_tasks: bool
) -> tuple[_Common, int]:
    """What is left of an increase, and what was measured of fragments beyond it, with the debt."""
    measured_java_ns = measured_node_ns = 0
    for use in lanes:
        measured_java_ns += use.planning_ns + (0 if remote_tasks else use.tasks_ns)
        measured_node_ns += use.writing_ns
    java_ns = grown.java_ns - measured_java_ns - debt_ns
    python_ns = grown.node_ns - measured_node_ns
    clients_ns = min(grown.clients_ns, max(0, python_ns))
    found = _Common(max(0, java_ns), clients_ns, max(0, python_ns) - clients_ns)
    return found, max(0, -java_ns) + max(0, -python_ns)


def shares(whole: int, weights: Mapping[FragmentId, int]) -> Mapping[FragmentId, int]:
    """Divide a whole number in proportion to weights; empty if no weight is above 0.

    Each share is rounded down; what is left goes to the largest weight, so that nothing is lost.
    """
    total = sum(weights.values())
    if total <= 0:
        return {}
    found = {one: whole * weight // total for one, weight in weights.items()}
    largest = max(sorted(weights), key=lambda one: weights[one])
    found[largest] += whole - sum(found.values())
    return found


def _grown_processes(before: ProcessTimes, after: ProcessTimes) -> ProcessTimes:
    names = [one.name for one in fields(ProcessTimes)]
    found = ProcessTimes(*(getattr(after, name) - getattr(before, name) for name in names))
    _check(min(getattr(found, name) for name in names), "a process of the node")
    return found


def _grown_lane(fragment: FragmentId, before: LaneUse, after: LaneUse) -> LaneUse:
    found = LaneUse(
        after.planning_ns - before.planning_ns,
        after.tasks_ns - before.tasks_ns,
        after.writing_ns - before.writing_ns,
        after.uses_python,
    )
    least = min(found.planning_ns, found.tasks_ns, found.writing_ns)
    _check(least, f"fragment {fragment}")
    return found


def _check(least_ns: int, what: str) -> None:
    if least_ns < 0:
        raise BrokenInvariantError(
            f"the CPU time of {what} has decreased by {-least_ns} ns",
            hint="nothing is charged for this interval; report this with the log of the node",
        )
