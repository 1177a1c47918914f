"""Three laboratories that share test machines: the mechanism without streams.

A task is a test suite; its load is the share of a machine that it takes. Run it in a clone of the
repository, with `python docs/federation/example.py`.
"""

from decimal import Decimal

from pipeline.contracts.costs import Levels, QueueingCost
from pipeline.contracts.load import Load, Task
from pipeline.contracts.messages import Event, Received, Tick
from pipeline.contracts.money import Currency
from pipeline.contracts.participant import participant, step, wake_ms
from pipeline.contracts.state import NEVER, Settings
from pipeline.contracts.terms import (
    Contract,
    ContractId,
    Kind,
    Limits,
    PartyId,
    Price,
    TaskId,
    TaskSet,
)
from pipeline.ids import Millis

LABS = {PartyId("berlin"): 28, PartyId("lyon"): 9, PartyId("oslo"): 4}
LEVELS = Levels(QueueingCost(Load(250.0)), Load(10.0), 20)
PRICE = Price(
    Currency("EUR"),
    fixed=Decimal(LEVELS.fixed).quantize(Decimal("0.000001")),
    span=Decimal(LEVELS.delta(1)).quantize(Decimal("0.000001")),
)
LIMITS = Limits(cpu_units=150, bytes_per_s=10**9, memory_bytes=10**12)


def contract(buyer: PartyId, seller: PartyId) -> Contract:
    """A contract of two laboratories about test suites."""
    return Contract(
        ContractId(f"{buyer}-{seller}"),
        Kind.LOAD,
        buyer,
        seller,
        PRICE,
        TaskSet(frozenset({"test suite"})),
        LIMITS,
        Millis(0),
        Millis(10**9),
    )


def main() -> list[str]:
    """Deliver every message at once until nobody has anything to do; returns the decisions."""
    every = [contract(one, other) for one in LABS for other in LABS if one != other]
    settings = Settings(LEVELS.cost, LEVELS.margin)
    labs = {
        lab: participant(
            lab,
            settings,
            [Task(TaskId(f"{lab}.{at}"), lab, Load(10.0)) for at in range(count)],
            [one for one in every if lab in (one.buyer, one.seller)],
        )
        for lab, count in LABS.items()
    }
    said: list[str] = []
    for _ in range(200):
        lab = min(labs, key=lambda one: wake_ms(labs[one]))
        now = wake_ms(labs[lab])
        if now >= NEVER or now >= every[0].until_ms:
            break
        pending: list[tuple[PartyId, Event]] = [(lab, Tick())]
        while pending:
            to, event = pending.pop(0)
            found = step(labs[to], event, now)
            labs[to] = found.state
            said += [one.explained() for one in found.decisions]
            pending += [(out.to, Received(to, out.message)) for out in found.messages]
    return said


if __name__ == "__main__":
    print("\n".join(main()))
