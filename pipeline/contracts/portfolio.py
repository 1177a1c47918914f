"""Tasks of a participant: those that it runs, and those that partners run for it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, NewType

from pipeline.contracts.load import NO_LOAD, Load, Task
from pipeline.contracts.terms import ContractId, PartyId, TaskId

OfferNumber = NewType("OfferNumber", int)
"""Counts the offers of one sender, from 1."""


class Link(NamedTuple):
    """A move under which a task is run by one participant for another.

    Args:
        partner: the other one.
        contract: under which.
        number: of the offer.
        price: of a load unit, for as long as the task stays.
    """

    partner: PartyId
    contract: ContractId
    number: OfferNumber
    price: Decimal

    def is_of(self, contract: ContractId, number: OfferNumber) -> bool:
        """Whether it is the move of an offer."""
        return self.number == number and self.contract == contract


class Held(NamedTuple):
    """A task that is run here, and for whom; None: it belongs here."""

    task: Task
    link: Link | None


class Sent(NamedTuple):
    """A task that a partner runs: for whom it was run here, and the move to the partner."""

    task: Task
    link: Link | None
    move: Link


class Groups(NamedTuple):
    """Tasks, of which those that differ only in their names are handled together.

    Args:
        held: the tasks.
        ranges: the first index of each group, and the one after its last.
    """

    held: tuple[Held, ...]
    ranges: tuple[tuple[int, int], ...]


def grouped(held: tuple[Held, ...]) -> Groups:
    """Tasks in their order, in groups of successive ones of equal load, work and path."""
    starts: list[int] = []
    load, work, path = None, None, None
    for at, (task, _) in enumerate(held):
        is_same = task.load is load or task.load == load
        if not (is_same and (task.work is work or task.work == work) and task.path == path):
            starts.append(at)
            load, work, path = task.load, task.work, task.path
    return Groups(held, tuple(pairwise((*starts, len(held)))))


@dataclass(frozen=True)
class Portfolio:
    """The tasks of a participant; none is in both parts.

    What is derived from them is kept, since offers are made more often than tasks move.

    Args:
        running: here.
        sent: to partners.
        load: of those that run here.
    """

    running: tuple[Held, ...] = ()
    sent: tuple[Sent, ...] = ()
    load: Load = NO_LOAD

    @cached_property
    def groups(self) -> Groups:
        """Those that run here in groups: first its own, then those of partners."""
        own = [held for held in self.running if held.link is None]
        if len(own) == len(self.running):
            return grouped(self.running)
        return grouped((*own, *(held for held in self.running if held.link is not None)))

    @cached_property
    def ids(self) -> frozenset[TaskId]:
        """All tasks of both parts."""
        running = [held.task.id for held in self.running]
        return frozenset(running + [one.task.id for one in self.sent])

    @cached_property
    def used(self) -> Mapping[ContractId, Load]:
        """The load that is run under each contract: here for others, and by partners."""
        found: dict[ContractId, list[Task]] = {}
        last, tasks = None, list[Task]()
        links = [(task, link) for task, link in self.running if link is not None]
        for task, link in links + [(task, move) for task, _, move in self.sent]:
            if link is not last:
                last, tasks = link, found.setdefault(link.contract, [])
            tasks.append(task)
        return {contract: total(tasks) for contract, tasks in found.items()}

    def taking(self, tasks: Iterable[Held]) -> "Portfolio":
        """With more tasks that run here."""
        more = tuple(tasks)
        return Portfolio(
            self.running + more, self.sent, self.load.plus(total(held.task for held in more))
        )

    def dropping(self, gone: Collection[TaskId]) -> "Portfolio":
        """Without some tasks that run here."""
        dropped = [held.task for held in self.running if held.task.id in gone]
        kept = tuple([held for held in self.running if held.task.id not in gone])
        return Portfolio(kept, self.sent, self.load.minus(total(dropped)))

    def sending(self, gone: Collection[TaskId], move: Link) -> "Portfolio":
        """With some tasks run by a partner instead of here."""
        moved = [Sent(*held, move) for held in self.running if held.task.id in gone]
        rest = self.dropping(gone)
        return Portfolio(rest.running, rest.sent + tuple(moved), rest.load)

    def bringing(self, back: Collection[TaskId]) -> "Portfolio":
        """With some tasks run here instead of by partners."""
        home = [Held(one.task, one.link) for one in self.sent if one.task.id in back]
        kept = tuple([one for one in self.sent if one.task.id not in back])
        return Portfolio(self.running, kept, self.load).taking(home)

    def with_loads(self, loads: Mapping[TaskId, Load]) -> "Portfolio":
        """With other loads of some tasks."""
        running = tuple(
            [
                held._replace(task=held.task.with_load(loads[held.task.id]))
                if held.task.id in loads
                else held
                for held in self.running
            ]
        )
        sent = tuple(
            [
                one._replace(task=one.task.with_load(loads[one.task.id]))
                if one.task.id in loads
                else one
                for one in self.sent
            ]
        )
        return Portfolio(running, sent, total(held.task for held in running))

    def held_under(self, contract: ContractId, number: OfferNumber) -> tuple[TaskId, ...]:
        """The tasks that are run here because of one offer of a partner."""
        return tuple(
            [
                task.id
                for task, link in self.running
                if link is not None and link.is_of(contract, number)
            ]
        )

    def sent_under(self, contract: ContractId, number: OfferNumber) -> tuple[TaskId, ...]:
        """The tasks that a partner runs because of one offer from here."""
        return tuple([one.task.id for one in self.sent if one.move.is_of(contract, number)])


def total(tasks: Iterable[Task]) -> Load:
    """The load of some tasks together."""
    cpu = byte = memory = 0.0
    for task in tasks:
        load = task.load
        cpu += load.cpu
        byte += load.bytes
        memory += load.memory
    return Load(cpu, byte, memory)
