"""Loads and tasks."""

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pipeline.contracts.terms import PartyId, Privacy, TaskId
from pipeline.errors import InputError

BYTES_PER_UNIT: Final = 10_000
"""Bytes per second that are one load unit: 1 % of 1 MB/s, as in the prototype of the paper."""


class Load(NamedTuple):
    """What a task, or a set of tasks, uses at a time.

    Args:
        cpu: load units of the processor, that is per cent of a reference core.
        bytes: load units of bytes read and written, `BYTES_PER_UNIT` per second each.
        memory: bytes of state.
    """

    cpu: float = 0.0
    bytes: float = 0.0
    memory: float = 0.0

    @property
    def units(self) -> float:
        """Load units that are paid for: of processor and bytes. Memory only adds to the cost."""
        return self.cpu + self.bytes

    def plus(self, other: "Load") -> "Load":
        """The sum of both."""
        return Load(self.cpu + other.cpu, self.bytes + other.bytes, self.memory + other.memory)

    def minus(self, other: "Load") -> "Load":
        """The rest without the other one; what rounding leaves below 0 is 0."""
        return Load(
            max(0.0, self.cpu - other.cpu),
            max(0.0, self.bytes - other.bytes),
            max(0.0, self.memory - other.memory),
        )

    def fits(self, room: "Load") -> bool:
        """Whether there is room for it, in each resource."""
        return self.cpu <= room.cpu and self.bytes <= room.bytes and self.memory <= room.memory


NO_LOAD: Final = Load()


def check_load(load: Load, place: str) -> None:
    """Check that a load is one.

    Raises:
        InputError: a part of it is negative, infinite or not a number.
    """
    for name, value in zip(Load._fields, load, strict=True):
        if not math.isfinite(value) or value < 0:
            raise InputError(
                f"its load has {name} {value}",
                place=place,
                hint="each part of a load is a finite number that is not negative.",
            )


@dataclass(frozen=True, slots=True)
class Work:
    """What a task does, and what it needs of who runs it beyond a price. Tasks may share one.

    Args:
        boxes: the kinds of work that it consists of.
        python: whether it runs code of its origin.
        availability_ms: longest interruption that it stands; None: any.
        delay_ms: longest delay of its results that it stands; None: any.
        regions: where it may run; empty: anywhere.
        privacy: of the data that it reads.
        direct: whether only a partner of its origin may run it, so that nobody passes it on.
    """

    boxes: frozenset[str] = frozenset()
    python: bool = False
    availability_ms: int | None = None
    delay_ms: int | None = None
    regions: frozenset[str] = frozenset()
    privacy: Privacy = Privacy.PUBLIC
    direct: bool = False


ANY_WORK: Final = Work()
"""Work that every contract about load permits."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task: the unit that moves.

    Args:
        id: its name.
        origin: to whom it belongs.
        load: what it uses.
        work: what it does and needs.
        path: the participants who have sent it on, from the origin to the last before who has it.

    Raises:
        InputError: its load is none.
    """

    id: TaskId
    origin: PartyId
    load: Load
    work: Work = ANY_WORK
    path: tuple[PartyId, ...] = ()

    def __post_init__(self) -> None:
        check_load(self.load, f"task {self.id}")

    def sent_by(self, sender: PartyId) -> "Task":
        """The same task at the partner of a sender."""
        return replace(self, path=(*self.path, sender))

    def with_load(self, load: Load) -> "Task":
        """The same task with another load."""
        return replace(self, load=load)

    def may_go_to(self, partner: PartyId) -> bool:
        """Whether it has not been there, and may be sent on from where it is."""
        return partner not in self.path and not (self.work.direct and self.path)
