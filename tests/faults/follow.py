"""Minutes of an owner's batches, repeated by a follower: `python -m tests.faults.follow --help`.

Two nodes, and no faults: bad, late and redriven records. Then both rest after the same batch, and
their states are compared; the owner is killed, the follower goes on, and all results are checked.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from brokers.embedded.java import find_java
from pipeline.cli.project import load_project
from pipeline.errors import MedusaError
from pipeline.ids import NodeId, Offset, TopicName
from pipeline.markers.codec import decode_marker
from pipeline.planner.plan import Fragment
from pipeline.spark.session.session import close_session, open_session, session_settings
from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.history import Finding, Kind, Sent
from tests.faults.judge import History, Verdict
from tests.faults.nodes import Node
from tests.faults.redrives import Coming, one_round, with_copies
from tests.faults.scenario import Begun, Tell, begin, settle
from tests.faults.standbys import await_gone, await_level, followed
from tests.faults.states import At, copied, covers, differences, folder_of, reached, stores
from tests.faults.values import counts
from tests.faults.world import OWNER, RunFailedError, World, Worlds

ROUND_S = 20.0
"""Time between two redrives."""
READ_WITHIN_S, RESTS_WITHIN_S = 120.0, 180.0
QUIET_S = 3.0
"""What has not changed for so long is at rest."""
KILLED_WITHIN_S = 8.0
MOST_NAMED = 3
REPAIRED, ENDED, UNLIKE = "repaired ", "the follower has failed", "has another outcome"
FAR_BEHIND = "far behind: "
IN_THE_QUERY = "goes on in the query of its follower"
"""What the log of a follower's node says of it."""
Spark = Callable[[], AbstractContextManager[SparkSession]]


@dataclass(frozen=True, slots=True)
class Followed:
    """Result of one case.

    Args:
        case: its name.
        batches: of the owners of its fragments with state, while the followers repeated them.
        redriven: dead letters that were sent again.
        revived: those of them whose schema had come meanwhile.
        late: dead letters of late records.
        bad: other dead letters.
        rows: of states that were compared.
        results: expected ones.
        catch_ups: how often a follower was far behind.
        begun_anew: how often a follower has ended, and another one began from its state.
        findings: what is wrong.
    """

    case: str
    batches: int
    redriven: int
    revived: int
    late: int
    bad: int
    rows: int
    results: int
    catch_ups: int
    begun_anew: int
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        wrong = f"{len(self.findings)} findings" if self.findings else "exact"
        behind = f" ({self.catch_ups} times far behind)" if self.catch_ups else ""
        behind += f" ({self.begun_anew} times begun anew)" if self.begun_anew else ""
        return (
            f"{self.case}: {self.batches:,} batches repeated{behind}, {self.redriven:,} redriven "
            f"({self.revived:,} of a schema that came), {self.late:,} late, {self.bad:,} bad, "
            f"{self.rows:,} state rows compared, {self.results:,} results: {wrong}"
        )


@dataclass(frozen=True, slots=True)
class _Rested:
    """A fragment whose owner and follower are after the same batch.

    Args:
        fragment: which one.
        owner: a copy of its checkpoint.
        follower: the same.
        batches: how many the owner has written since it was followed.
        is_level: whether the follower is noted as level.
    """

    fragment: Fragment
    owner: tuple[Path, At]
    follower: tuple[Path, At]
    batches: int
    is_level: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """Networks that run on one node, and are followed on another one."""

    world: World
    begun: Sequence[Begun]
    coming: Coming
    owner: Node
    follower: Node

    def fragments(self) -> Iterator[tuple[Begun, Fragment]]:
        """All fragments with state: others have no follower."""
        for one in self.begun:
            for fragment in one.running.plan.fragments:
                if fragment.stateful_box is not None:
                    yield one, fragment

    def await_read(self) -> None:
        """Wait until owners and followers have read all that stands in the inputs now."""
        every = [(one, f) for one in self.begun for f in one.running.plan.fragments]
        ends = {f.names.markers: self._ends(f) for _, f in every}

        def is_read() -> bool:
            return all(
                (marker := one.running.marker(f)) is not None
                and covers(
                    {(p.topic, p.partition): n for p, n in marker.end.items()},
                    ends[f.names.markers],
                )
                for one, f in every
            ) and all(
                (at := self._reached(self.follower, f)) is not None
                and covers(at.ends, ends[f.names.markers])
                for _, f in self.fragments()
            )

        self.world.wait(is_read, "all that was sent is read", READ_WITHIN_S)

    def rest(self, seen: Mapping[TopicName, int]) -> Iterator[_Rested]:
        """Wait until nothing moves while nothing is sent, and copy the checkpoints.

        `seen`: of each topic of markers, the batches before it was followed.
        """
        quiet = _Quiet(self._at_rest)
        self.world.wait(quiet, "owners and followers are after the same batches", RESTS_WITHIN_S)
        level = self.world.catalog.snapshot(OWNER).level
        for one, fragment in self.fragments():
            sides = []
            for node in (self.owner, self.follower):
                folder, at = self._folder(node, fragment), self._reached(node, fragment)
                if folder is None or at is None:
                    raise RunFailedError(
                        f"the checkpoint of {fragment.name} on {node.name} is gone"
                    )
                to = self.world.folder / f"rest-{one.running.network}-{fragment.name}-{node.name}"
                sides.append((copied(folder, to), at))
            batches = _batches(one, fragment) - seen[fragment.names.markers]
            is_level = (fragment.names.id, NodeId(self.follower.name)) in level
            yield _Rested(fragment, sides[0], sides[1], batches, is_level)

    def _at_rest(self) -> object:
        """How far all are, if owners and followers have read everything; else None."""
        found = []
        for _, fragment in self.fragments():
            one, other = (self._reached(n, fragment) for n in (self.owner, self.follower))
            if one is None or other is None or not one.is_like(other):
                return None
            if not covers(one.ends, self._ends(fragment)):
                return None
            found.append((one, other))
        return found

    def _ends(self, fragment: Fragment) -> Mapping[TopicName, Mapping[int, Offset]]:
        topics = {source.topic for source in fragment.inputs}
        topics |= self.world.admin.describe((fragment.names.redrive,)).keys()
        return self.world.admin.end_offsets(topics)

    def _folder(self, node: Node, fragment: Fragment) -> Path | None:
        return folder_of(node.checkpoints, fragment.names)

    def _reached(self, node: Node, fragment: Fragment) -> At | None:
        return reached(self._folder(node, fragment))


class _Quiet:
    """A condition: something is known, and has not changed for a while."""

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self._last: tuple[object, float] = (None, 0.0)

    def __call__(self) -> bool:
        found, now_s = self._look(), time.monotonic()
        if found is None or found != self._last[0]:
            self._last = (found, now_s)
        return found is not None and now_s - self._last[1] >= QUIET_S


def follow(
    world: World, cases: Sequence[Case], lasts_s: float, seed: int, spark: Spark, tell: Tell
) -> list[Followed]:
    """Run some cases concurrently, followed for some time.

    Raises:
        RunFailedError: a network did not reach a required state; the world is unusable.
    """
    random, coming, now_ms = Random(seed), Coming(), time.time_ns() // 1_000_000
    named = {f"{case.name}_{now_ms % 10_000_000}": case for case in cases}
    begun = [begin(world, coming.of(case, name), name, random) for name, case in named.items()]
    if not world.node.running:
        world.restart()
    world.await_stable(now_ms)
    run = _Run(world, begun, coming, *followed(world))
    await_level(world, run.follower)
    seen = {f.names.markers: _batches(one, f) for one, f in run.fragments()}
    tell(f"{', '.join(named)}: followed by {run.follower.name}")
    ends_at = time.monotonic() + lasts_s
    while (left_s := ends_at - time.monotonic()) > 0:
        count = one_round(world, coming, named, min(ROUND_S, left_s), run.await_read)
        tell(f"{count} dead letters redriven, {max(0.0, ends_at - time.monotonic()):.0f} s left")
    with world.silence():
        rested = list(run.rest(seen))
    tell("owner and follower have rested after the same batches")
    time.sleep(random.uniform(1, KILLED_WITHIN_S))
    run.owner.kill()
    killed_ms = time.time_ns() // 1_000_000
    await_gone(world, run.follower)
    world.await_stable(killed_ms)
    tell(f"{run.owner.name} was killed, {run.follower.name} goes on")
    settled = [_settled(world, one, coming, tell) for one in begun]
    with spark() as session:
        compared = [(one, *_compared(session, one)) for one in rested]
    log = run.follower.log.read_text(encoding="utf-8", errors="replace")
    done = [_result(one, each, compared, log) for one, each in zip(begun, settled, strict=True)]
    for one in begun:
        world.remove(one.running)
    return done


def _batches(one: Begun, fragment: Fragment) -> int:
    """How many batches a fragment has written so far, as observed."""
    seen = one.running.observer.seen(fragment.names.markers)
    values = [record.record.value for record in seen]
    return len({decode_marker(value, "a marker").batch for value in values if value is not None})


@dataclass(frozen=True, slots=True)
class _Settled:
    """The verdict over a network, its copies in redrive topics, and what is wrong in them."""

    verdict: Verdict
    copies: Sequence[Sent]
    wrong: Sequence[Finding]


def _settled(world: World, one: Begun, coming: Coming, tell: Tell) -> _Settled:
    copies, wrong = list[Sent](), list[Finding]()

    def prepare(history: History) -> History:
        found, findings = with_copies(history, coming, world.decoder())
        copies.extend(found.sent[len(history.sent) :])
        wrong.extend(findings)
        return found

    return _Settled(settle(world, one, tell, prepare), copies, wrong)


def _compared(spark: SparkSession, one: _Rested) -> tuple[int, list[str]]:
    """The number of the owner's rows in a state, and how the follower's differs."""
    (owner, at), (follower, there) = one.owner, one.follower
    found, other = stores(spark, owner, at.batch), stores(spark, follower, there.batch)
    return sum(rows.total() for rows in found.values()), list(differences(found, other))


def _result(
    one: Begun, settled: _Settled, compared: Sequence[tuple[_Rested, int, list[str]]], log: str
) -> Followed:
    own = [each for each in compared if each[0].fragment.names.network.name == one.running.network]
    labels = [f"{one.running.network}.{rested.fragment.name}" for rested, _, _ in own]
    said = [note for label in labels for note in notes(log, label)]
    findings = [*settled.verdict.findings, *settled.wrong]
    findings += [
        Finding(Kind.STATE, f"fragment {rested.fragment.name}, {text}")
        for rested, _, texts in own
        for text in texts
    ]
    findings += [
        Finding(Kind.FOLLOWER, f"fragment {rested.fragment.name} has none that is level")
        for rested, _, _ in own
        if not rested.is_level
    ]
    findings += [Finding(Kind.FOLLOWER, text) for label in labels for text in wrong_in(log, label)]
    verdict = settled.verdict
    return Followed(
        case=one.case.name,
        batches=sum(rested.batches for rested, _, _ in own),
        redriven=len(settled.copies),
        revived=sum(copy.fields is not None for copy in settled.copies),
        late=verdict.late,
        bad=verdict.refused - verdict.late,
        rows=sum(rows for _, rows, _ in own),
        results=verdict.expected,
        catch_ups=sum(text.startswith(FAR_BEHIND) for text in said),
        begun_anew=sum(text.startswith(ENDED) for text in said),
        findings=tuple(findings),
    )


def notes(log: str, label: str) -> list[str]:
    """What the log of a node says of a fragment."""
    name = f"[{label}] "
    return [line.partition(name)[2] for line in log.splitlines() if name in line]


def wrong_in(log: str, label: str) -> Iterator[str]:
    """Repairs and failures of a follower, and whether another query has taken its place."""
    said = notes(log, label)
    for text in said:
        if text.startswith(REPAIRED) or UNLIKE in text:
            yield f"{label}: {text}"
    if not any(text.startswith(IN_THE_QUERY) for text in said):
        yield f"{label}: the lane has not gone on in the query of its follower"


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the selected cases; returns 0 if everything was exact."""
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="medusa-followed-"))
    settings = load_project({}, os.environ, Path.cwd()).settings
    worlds = Worlds(folder, Path(settings.cache).expanduser().absolute())
    names = tuple(dict.fromkeys(options.cases))
    jobs = [names] if options.together else [(name,) for name in names]
    is_exact = True
    try:
        for number, job in enumerate(jobs):
            spark = partial(opened, folder / "session")
            is_exact &= _run(worlds, job, options.minutes * 60, options.seed + number, spark)
    except KeyboardInterrupt:
        is_exact = False
        _say("broken off")
    finally:
        worlds.drop()
        if options.keep:
            _say(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_exact else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.follow", description="A follower for minutes, judged exactly."
    )
    add = parser.add_argument
    add("--cases", nargs="+", default=["window"], choices=CASES, metavar="CASE")
    add("--minutes", type=float, default=10.0, help="how long each is followed (%(default)s)")
    add("--seed", type=int, default=1, help="of everything left to chance (%(default)s)")
    add("--together", action="store_true", help="all cases at once on the same two nodes")
    add("--keep", action="store_true", help="keep the folder with logs and data")
    return parser.parse_args(arguments)


def _run(worlds: Worlds, job: Sequence[str], lasts_s: float, seed: int, spark: Spark) -> bool:
    """Run cases together; returns whether everything was exact."""
    _say(f"seed {seed}: {', '.join(job)}")
    try:
        cases = [CASES[name] for name in job]
        done = follow(worlds.get(), cases, lasts_s, seed, spark, lambda text: _say(f"  {text}"))
    except (RunFailedError, MedusaError, RuntimeError) as error:
        _say(f"  {error}")
        worlds.drop()
        return False
    for one in done:
        _say(str(one))
        for kind, count in counts(one.findings).items():
            texts = [str(finding) for finding in one.findings if finding.kind is kind]
            _say("\n".join(f"  {text}" for text in texts[:MOST_NAMED]))
            if count > MOST_NAMED:
                _say(f"  … and {count - MOST_NAMED} more of this kind")
    return not any(one.findings for one in done)


@contextmanager
def opened(scratch: Path) -> Iterator[SparkSession]:
    """A session that reads states."""
    settings = load_project({}, os.environ, Path.cwd()).settings
    wanted = session_settings(settings, "states", scratch, find_java(os.environ))
    session = open_session(replace(wanted, master="local[1]"))
    try:
        yield session
    finally:
        close_session(session)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
