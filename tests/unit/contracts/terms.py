"""A contract for tests."""

from decimal import Decimal

from pipeline.contracts.money import Currency
from pipeline.contracts.terms import Contract, ContractId, Kind, Limits, PartyId, Price, TaskSet
from pipeline.ids import Millis

CONTRACT = Contract(
    id=ContractId("alice-bob-1"),
    kind=Kind.LOAD,
    buyer=PartyId("alice"),
    seller=PartyId("bob"),
    price=Price(Currency("EUR"), Decimal("0.0040"), Decimal("0.0004")),
    tasks=TaskSet(frozenset({"filter", "aggregate"})),
    limits=Limits(cpu_units=50, bytes_per_s=2_000_000, memory_bytes=1 << 30),
    from_ms=Millis(1_000),
    until_ms=Millis(2_000),
)
