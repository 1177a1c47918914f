"""One run: deploy cases, send records, inject faults, wait for the results, check."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.faults.case import Case
from tests.faults.feed import Feeder, encoders
from tests.faults.history import Finding
from tests.faults.judge import History, Verdict, judge
from tests.faults.settled import await_settled
from tests.faults.strikes import Fault
from tests.faults.world import Running, World

CALM_MIN_S, CALM_MAX_S = 0.5, 4.0
"""Bounds of the random pause between two faults, so that they occur at any moment."""
BEGINS_MS_AGO = 6 * 3_600_000
"""How long ago event time begins. That of some feeds moves several times as fast as the clock, and
a chain of faults is long: an hour ahead of the clock all records would become dead letters."""
Tell = Callable[[str], None]
Prepare = Callable[[History], History]


@dataclass(frozen=True, slots=True)
class Struck:
    """One fault of a run: its duration, and the time until every fragment wrote again."""

    fault: str
    lasted_s: float
    stable_s: float


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a run."""

    seed: int
    struck: tuple[Struck, ...]
    verdicts: tuple[Verdict, ...]
    restarts: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all networks."""
        return tuple(finding for verdict in self.verdicts for finding in verdict.findings)

    def words(self) -> str:
        """The first few findings of each kind as text."""
        first = f"seed {self.seed}, {', '.join(s.fault for s in self.struck)}:"
        return "\n".join([first, *(verdict.words() for verdict in self.verdicts)])


def run(
    world: World, cases: Sequence[Case], faults: Sequence[Fault], seed: int, tell: Tell
) -> Report:
    """Run some cases concurrently, with some faults one after the other.

    Raises:
        RunFailedError: a network did not reach a required state; the world is unusable.
    """
    random = Random(seed)
    restarts = world.restarts
    now_ms = time.time_ns() // 1_000_000
    networks = [begin(world, case, f"{case.name}_{now_ms % 10_000_000}", random) for case in cases]
    if not world.node.running:
        world.restart()
    world.await_stable(now_ms)
    tell(f"{', '.join(one.running.network for one in networks)}: running")
    struck = [_strike(world, fault, random, tell) for fault in faults]
    verdicts = [settle(world, fed, tell) for fed in networks]
    for fed in networks:
        world.remove(fed.running)
    return Report(seed, tuple(struck), tuple(verdicts), world.restarts - restarts)


def _strike(world: World, fault: Fault, random: Random, tell: Tell) -> Struck:
    time.sleep(random.uniform(CALM_MIN_S, CALM_MAX_S))
    began = time.monotonic()
    fault.strike(world, random)
    lasted_s, since_ms = time.monotonic() - began, time.time_ns() // 1_000_000
    world.await_stable(since_ms)
    struck = Struck(fault.name, lasted_s, time.monotonic() - began - lasted_s)
    tell(f"{fault.name}: lasted {lasted_s:.1f} s, stable {struck.stable_s:.1f} s later")
    return struck


@dataclass(frozen=True, slots=True)
class Begun:
    """A case with a running, fed network."""

    case: Case
    running: Running
    feeder: Feeder


def begin(world: World, case: Case, network: str, random: Random) -> Begun:
    """Deploy a case, and start to feed and to observe it."""
    schemas = {f"{stream.name}.avsc": json.dumps(stream.schema) for stream in case.streams}
    files = {**schemas, **case.files}
    plan = world.deploy(network, case.document.replace("{name}", network), files)
    feeder = Feeder(
        world.stack.kafka_bootstrap_servers,
        case,
        encoders(case, network, world.registry.register),
        Random(random.random()),
        time.time_ns() // 1_000_000 - BEGINS_MS_AGO,
    )
    return Begun(case, world.run(network, plan, feeder), feeder)


def settle(world: World, fed: Begun, tell: Tell, prepare: Prepare = lambda one: one) -> Verdict:
    """Wait for all results of the sent records, and check them.

    `prepare`: adds to a history what else was sent.
    """
    running = fed.running
    world.await_complete(running, fed.feeder.finish())
    await_settled(world, running)
    history = prepare(world.history(running, fed.feeder.sent))
    verdict = judge(fed.case, running.network, history, world.decoder())
    tell(str(verdict))
    return verdict
