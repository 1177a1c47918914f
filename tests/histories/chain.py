"""A chain of deploys of one network, and the checks of its lanes' commits.

Its scene is the environment: in memory or real servers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from pipeline.ids import NetworkId, NetworkName
from tests.histories import deploys
from tests.histories.documents import CHANGES, FORGETS, NEEDS_NOTHING, Net
from tests.histories.node import OWNER
from tests.histories.reference import Ledger, Wrong
from tests.histories.world import Commit, Scene

_OVERTAKEN: Final = (
    "another version of the network made the state",
    "was never read here",
    "a lane of an earlier one has begun anew",
)
"""Errors of a lane that stops without loss: its last owner continued after the comparison."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step, with its own seed, so that steps can be left out."""

    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.seed}"


@dataclass(frozen=True, slots=True)
class Script:
    """A whole history, before it runs."""

    seed: int
    steps: tuple[Step, ...]
    append_time: bool = False
    """Whether topics use log append time by default."""
    rolls_back: bool = False
    """Whether the first document has rollback recovery, and deploys may change that."""


@dataclass
class Outcome:
    """Result of a history."""

    script: Script
    wrong: list[Wrong] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The kind of the violation; empty if there is none."""
        return self.wrong[0].kind if self.wrong else ""


class Chain:
    """Deploys documents of one network, and collects violations."""

    def __init__(
        self, scene: Scene, net: Net, outcome: Outcome, allowed: frozenset[str] = frozenset()
    ) -> None:
        self.scene, self.outcome, self.allowed = scene, outcome, allowed
        self.net = net
        self.nets: list[Net] = [net]
        self.accounts = deploys.Accounts()
        self.ledgers = self.accounts.ledgers
        self.excuses: set[str] = set()  # data that steps have deleted, so that lanes may stop

    def change(self, kind: str, rng: Random) -> None:
        """Deploy the next document, with a change of a kind, if there is one."""
        changed = CHANGES[kind](self.net, rng)
        if changed is None or deploys.read(changed) is None:
            return
        needs_nothing = kind in NEEDS_NOTHING and not self.excuses and self.all_run()
        chosen = self.deploy(changed, rng)
        if chosen and needs_nothing:
            self.wrong(Wrong("asked", "", f"{kind} asks for {chosen}"))

    def deploy(
        self, net: Net, rng: Random, stopped: Mapping[str, str] = deploys.NONE_STOPPED
    ) -> str:
        """Deploy a document; returns its version and the choices as text."""
        chosen = ""
        for line in deploys.deploy(self.scene, self.accounts, net, rng, stopped):
            if isinstance(line, Wrong):
                self.wrong(line)
            else:
                self.log(f"  deploy: {line}")
                if line.startswith("version"):
                    self.net = net
                    self.nets.append(net)
                    self.log(net.text)
                    chosen = line.partition(", chosen: ")[2]
        return chosen

    # --- what is watched --------------------------------------------------------------------------

    def on_commit(self, commit: Commit) -> None:
        """Check a committed transaction of a lane."""
        key = commit.life, str(commit.names.fragment)
        deployment = self.scene.deployments.get((commit.life, commit.version))
        if deployment is None:
            self.wrong(Wrong("plan", key[1], f"version {commit.version} runs, and is unknown"))
            return
        ledger = self.ledgers.get(key)
        if ledger is None:
            ledger = self.ledgers[key] = Ledger(
                key[1], self.scene.kafka, self.scene.undecided, self.wrong, {}
            )
        ledger.begins = deployment.begins.get(key[1], {})
        nets = (one.net for one in self.scene.deployments.values())
        ledger.may_forget = any(net.secondaries == FORGETS for net in nets)
        executed = commit.executed
        reads = executed.reads if executed is not None else {}
        self.log(
            f"    {key[1]} v{commit.version} {commit.marker.incarnation}/{commit.marker.batch} "
            f"epoch {commit.marker.epoch}: {_reads(reads)} "
            f"late {commit.marker.late_ms} evict {commit.marker.eviction_ms} promise "
            f"{commit.marker.boundary_ms}"
        )
        for wrong in self.accounts.writers.on_first_marker(commit, ledger, self.ledgers):
            self.wrong(wrong)
        ledger.process(commit, deployment)
        self.accounts.carried_out(key, ledger.begins, commit.marker)

    def wrong(self, wrong: Wrong) -> None:
        """Add a violation, unless it is allowed."""
        if wrong.kind not in self.allowed:
            self.log(f"  WRONG {wrong}")
            self.outcome.wrong.append(wrong)

    def log(self, text: str) -> None:
        """Add a line to the log."""
        self.outcome.log.append(text)

    def check_stopped(self, stopped: Mapping[str, str], *, answered: bool) -> None:
        """Lanes stop only for data that steps have deleted, and not after a choice about it."""
        for fragment, text in stopped.items():
            overtaken = any(one in text for one in _OVERTAKEN)
            if answered or not (self.excuses or overtaken):
                self.wrong(Wrong("stopped", fragment, text))

    def _fragments(self) -> Iterator[tuple[str, Ledger | None]]:
        """All deployed fragments, with the ledgers of those that run as they are deployed."""
        catalog, scene = self.scene.servers.catalog, self.scene
        for record in catalog.fragments.of(NetworkId(OWNER, NetworkName(self.net.name))):
            name = str(record.fragment)
            ledger = self.ledgers.get((scene.life, name))
            deployment = scene.deployments.get((scene.life, int(record.version)))
            runs = ledger is not None and deployment is not None and ledger.runs(deployment)
            yield name, ledger if runs else None

    def all_run(self) -> bool:
        """Whether each fragment runs as deployed, with the choices of its deploy."""
        ledgers = [ledger for _, ledger in self._fragments()]
        return all(ledger is not None and not ledger.undone for ledger in ledgers)

    def open(self) -> Iterator[tuple[str, str]]:
        """Unread records and unpublished results, by fragment."""
        newest = self.scene.servers.clock.now_ms() - 20_000
        for name, ledger in self._fragments():
            if ledger is None:
                yield name, "it has not started"
                continue
            for text in ledger.unread():
                yield name, f"unread {text}"
            for end in ledger.pending():
                if end < newest:
                    yield name, f"the window that ends at {end} is not published"


def _reads(reads: Mapping[tuple[str, str], tuple[str, Mapping[int, tuple[int, int]]]]) -> str:
    return " ".join(
        f"{name}[{topic_id}] "
        + ",".join(f"{p}:{start}-{end}" for p, (start, end) in ranges.items() if end > start)
        for (name, _), (topic_id, ranges) in reads.items()
    )
