"""Terms of a contract: parties, price, tasks, limits, duration, clauses. Facts only, checked."""

from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import NewType

from pipeline.contracts.money import (
    EXACT,
    Currency,
    LoadUnits,
    Money,
    check_currency,
    check_decimal,
)
from pipeline.errors import InputError
from pipeline.ids import Millis

ContractId = NewType("ContractId", str)
PartyId = NewType("PartyId", str)
"""A participant of a federation."""
TaskId = NewType("TaskId", str)
"""Unique among all tasks of its origin, the participant to whom it belongs."""


class Kind(StrEnum):
    """Kind of a contract."""

    LOAD = "load"
    """The seller runs tasks of the buyer."""
    CONTENT = "content"
    """The seller sends data."""
    MOVEMENT = "movement"
    """The seller takes over what another participant runs for the buyer."""
    SUGGESTED = "suggested"
    """The seller names another source of what it sends."""


class Per(StrEnum):
    """What a price is for."""

    LOAD_UNIT = "load_unit"


class Privacy(IntEnum):
    """How sensitive data are; a higher class includes the lower ones."""

    PUBLIC = 0
    INTERNAL = 1
    PERSONAL = 2


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a load unit: from `fixed - span` up to `fixed`, found anew for each move.

    The range lies below the fixed price, as in the paper: the fixed price is the one that both
    agreed on, and the range lets load pass on through participants who are at it.

    Args:
        currency: of the price.
        fixed: the highest price.
        span: width of the range; 0: a fixed price.
        per: what it is for.

    Raises:
        InputError: a float, not finite, negative, or a range wider than the fixed price.
    """

    currency: Currency
    fixed: Decimal
    span: Decimal = Decimal(0)
    per: Per = Per.LOAD_UNIT

    def __post_init__(self) -> None:
        check_currency(self.currency, "price")
        check_decimal(self.fixed, "fixed", "price")
        check_decimal(self.span, "range", "price")
        if self.fixed == 0:
            raise InputError(
                "the fixed price is 0",
                place="price",
                hint="nothing is ever offered at it; without a price there is no contract.",
            )
        if self.span > self.fixed:
            raise InputError(
                f"the range {self.span} is wider than the fixed price {self.fixed}",
                place="price",
                hint="the range lies below the fixed price, so it is at most as wide.",
            )

    @property
    def lowest(self) -> Decimal:
        """The lowest price of a load unit."""
        return EXACT.subtract(self.fixed, self.span)

    @property
    def highest(self) -> Decimal:
        """The highest price of a load unit."""
        return self.fixed

    def payment(self, units: LoadUnits, unit_price: Decimal) -> Money:
        """What some load costs, exactly: nothing is rounded.

        Args:
            units: metered load.
            unit_price: the price at which the load moved.

        Raises:
            InputError: the price lies outside the range, or the load is none.
        """
        check_decimal(units, "load", "payment")
        check_decimal(unit_price, "price", "payment")
        if not self.lowest <= unit_price <= self.highest:
            raise InputError(
                f"the price {unit_price} lies outside of {self.lowest} to {self.highest}",
                place="payment",
                hint="prices of a contract never leave its range.",
            )
        return Money(self.currency, EXACT.multiply(units, unit_price))


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks that a contract is about.

    Args:
        boxes: kinds of work that a task may consist of.
        python: whether it may run code of its origin.
    """

    boxes: frozenset[str]
    python: bool = False

    def __post_init__(self) -> None:
        if not self.boxes:
            raise InputError(
                "no kind of box is named", place="tasks", hint="name at least one, such as filter."
            )

    def outside(self, boxes: Collection[str], *, python: bool) -> tuple[str, ...]:
        """What of a task is not in the set; empty if the contract is about it."""
        found = sorted(set(boxes) - self.boxes)
        return (*found, "python") if python and not self.python else tuple(found)

    def contains(self, boxes: Collection[str], *, python: bool) -> bool:
        """Whether the contract is about a task that consists of these."""
        return not self.outside(boxes, python=python)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that the seller runs for the buyer at a time, of each resource.

    Args:
        cpu_units: load units per second, that is per cent of a reference core.
        bytes_per_s: read and written.
        memory_bytes: of state.
    """

    cpu_units: int
    bytes_per_s: int
    memory_bytes: int

    def __post_init__(self) -> None:
        names = ("cpu_units", "bytes_per_s", "memory_bytes")
        for name, value in zip(
            names, (self.cpu_units, self.bytes_per_s, self.memory_bytes), strict=True
        ):
            if not _is_positive(value):
                raise InputError(
                    f"{name} is {value}", place="limits", hint="limits are positive whole numbers."
                )


@dataclass(frozen=True, slots=True)
class Clauses:
    """What the seller promises besides its price; a task with higher needs is not accepted.

    Args:
        availability_ms: longest interruption of a task; None: no promise.
        delay_ms: longest delay of its results; None: no promise.
        regions: where it runs; empty: no promise.
        privacy: the most sensitive data that it may read.
    """

    availability_ms: int | None = None
    delay_ms: int | None = None
    regions: frozenset[str] = frozenset()
    privacy: Privacy = Privacy.PUBLIC

    def __post_init__(self) -> None:
        for name, value in (("availability", self.availability_ms), ("delay", self.delay_ms)):
            if value is not None and value < 0:
                raise InputError(
                    f"{name} is {value} ms", place="clauses", hint="a duration is not negative."
                )


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract between two participants.

    Args:
        id: unique among the contracts of both.
        kind: what it is about.
        buyer: who sends load and pays.
        seller: who runs it and is paid.
        price: of a load unit.
        tasks: what may be sent.
        limits: the most at a time.
        from_ms: begin, included.
        until_ms: end, excluded.
        notice_ms: how long it goes on after either side has cancelled it.
        clauses: further promises of the seller.

    Raises:
        InputError: it ends before it begins, or one party has both roles.
    """

    id: ContractId
    kind: Kind
    buyer: PartyId
    seller: PartyId
    price: Price
    tasks: TaskSet
    limits: Limits
    from_ms: Millis
    until_ms: Millis
    notice_ms: int = 0
    clauses: Clauses = field(default_factory=Clauses)

    def __post_init__(self) -> None:
        place = f"contract {self.id}"
        for name, value in (("id", self.id), ("buyer", self.buyer), ("seller", self.seller)):
            if not value:
                raise InputError(f"{name} is empty", place=place, hint="give it a name.")
        if self.buyer == self.seller:
            raise InputError(
                f"{self.buyer} is buyer and seller", place=place, hint="name two participants."
            )
        if self.until_ms <= self.from_ms:
            raise InputError(
                f"it ends at {self.until_ms} and begins at {self.from_ms}",
                place=place,
                hint="the end lies after the begin; both are milliseconds since 1970, UTC.",
            )
        if self.notice_ms < 0:
            raise InputError(
                f"the notice is {self.notice_ms} ms", place=place, hint="it is not negative."
            )

    def is_in_force(self, at_ms: Millis) -> bool:
        """Whether it holds at a time."""
        return self.from_ms <= at_ms < self.until_ms


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and number > 0
