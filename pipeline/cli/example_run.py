"""Run of an example in a temporary folder: stack, deploy, producer, verdict, clean-up."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from brokers.embedded.processes import Child
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import OwnerRecord
from pipeline.cli.commands.init import template_files
from pipeline.cli.detached import medusa_command
from pipeline.cli.example_screen import LiveScreen, PlainScreen, screen_for
from pipeline.cli.modules import PROJECTS
from pipeline.cli.progress import StepPrinter
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.deploy.documents import read_document
from pipeline.errors import ExitCode
from pipeline.examples.collect import Collected, watched
from pipeline.examples.cut import Cut, Tally, as_data
from pipeline.examples.cutting import Cutting
from pipeline.examples.example import DOCUMENT, PRODUCER, Example
from pipeline.examples.judge import DeadLetterCheck, compared, newest_ms
from pipeline.examples.memory import Peak
from pipeline.examples.moving import Lost, Moved, movable, pause_after_ms, read_markers
from pipeline.examples.run import Run, Then, World
from pipeline.examples.stage import SECOND, Feed, Stage, choose_place, write_project
from pipeline.examples.verdict import Verdict, as_lines
from pipeline.ids import NO_EPOCH, Epoch, FragmentId, Millis, NodeId
from pipeline.network.drawing.picture import picture
from pipeline.network.drawing.text import as_text
from pipeline.planner import planner
from pipeline.planner.plan import Plan
from pipeline.reference.inputs import Inputs
from schemas.json_value import JsonObject

RELIABILITY = "\nreliability: active_standby\n"
"""What a document gets for a run with two nodes."""


@dataclass(frozen=True, slots=True)
class ExampleOptions:
    """Options of a run.

    Args:
        feed: arguments and duration of the producer.
        label: prefix of every line; part of the folder's name.
        keep: whether the folder is kept after a run without differences.
        nodes: 1, or 2: then each follows what the other one runs, a fragment is moved from one to
            the other in the middle, and the second one is killed later.
        cut: of the input in the middle, for which the example needs a variant; None: none.
    """

    example: Example
    feed: Feed
    label: str
    keep: bool
    nodes: int = 1
    cut: Cut | None = None


def run_example(session: Session, options: ExampleOptions) -> None:
    """Run an example, print its verdict, and exit with a code that depends on it."""
    cache = Path(session.settings.cache)
    java = find_java(os.environ)
    ensure_jars(cache, lambda: java, StepPrinter(session.printer))
    folder = Path(tempfile.mkdtemp(prefix=f"medusa-{options.label}-"))
    terminal = sys.stderr.isatty()
    with _signals_interrupt():
        finished = False
        try:
            with screen_for(session.printer, options.label, terminal=terminal) as screen:
                verdict = _run_to_verdict(session, folder, options, screen)
            finished = verdict.right
        except KeyboardInterrupt:
            finished = True
            raise
        finally:
            if options.keep or not finished:
                session.printer.note(f"[{options.label}] logs and data are in {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    _report(session, verdict)


def _run_to_verdict(
    session: Session, folder: Path, options: ExampleOptions, screen: PlainScreen | LiveScreen
) -> Verdict:
    """The verdict of a run in an empty folder; all its processes have ended on return."""
    example = options.example if options.cut is None else options.example.with_bound
    place = choose_place(folder, Path(session.settings.cache))
    write_project(place, example, template_files(resources.files(PROJECTS) / example.name))
    # The project refers to its schemas by file, so no registry is needed.
    if options.nodes > 1:
        with (folder / DOCUMENT).open("a", encoding="utf-8") as document:
            document.write(RELIABILITY)
    network = read_document(folder / DOCUMENT, lambda _: None).network
    owner = session.participant
    plan = planner.plan(network, owner)
    peak = Peak(os.getpid())
    with Stage(place, medusa_command, session.clock) as stage:
        screen.step("starting Kafka, ZooKeeper, the schema registry and a node: medusa up")
        catalog = stage.up()
        if options.nodes > 1:
            screen.step("starting a second node: medusa node start")
            stage.second_node(catalog)
        screen.step("registering the schemas and deploying the network: medusa deploy")
        stage.deploy()
        cutting = _cutting(stage, session, options, plan, screen)
        world = World(
            plan=plan,
            graph=as_text(picture(network, owner)),
            topics=stage.topics(),
            records=stage.records(),
            inputs=stage.records(),
            statuses=lambda: catalog.statuses.of(plan.network),
            check=stage.check,
            measure=peak.measure,
            screen=screen,
            clock=session.clock,
            beside=cutting,
        )
        decoding = stage.decoding()
        run = Run(world, Collected(watched(plan, example.results), decoding.result))
        run.await_running()
        screen.step(f"feeding {example.fed}: {' '.join((PRODUCER, *options.feed.arguments))}")
        changing = Changing(stage, catalog, plan, screen)
        then = changing.then if options.nodes > 1 else ()
        if cutting is not None:
            then = cutting.then(options.feed.seconds)
        run.watch(stage.feed(options.feed), options.feed.seconds, then)
        given = run.inputs(network, decoding)
        until_ms = Millis(newest_ms(given, network) + example.settle_ms)
        complete = run.settle(until_ms)
        moved, lost = changing.end()
        cut = None if cutting is None else cutting.end(until_ms, stage.check)
        screen.step("comparing with the reference, and stopping everything")
    inputs = Inputs(given, tuple(run.collected.refusals))
    return Verdict(
        what=example.fed,
        fed=sum(len(records) for records in given.values()),
        complete=complete,
        comparisons=tuple(
            compared(result, inputs, network, run.collected.rows[result.box], until_ms)
            for result in example.results
        ),
        dead_letters=len(inputs.refusals),
        wrong_letters=tuple(DeadLetterCheck(inputs, network, plan).wrong()),
        memory_bytes=peak.bytes,
        moved=moved,
        lost=lost,
        cut=cut,
    )


def _cutting(
    stage: Stage,
    session: Session,
    options: ExampleOptions,
    plan: Plan,
    screen: PlainScreen | LiveScreen,
) -> Cutting | None:
    """The cut of a run over a deployed network; None: nothing is cut."""
    bounded = options.example.bounded
    if options.cut is None or bounded is None:
        return None
    tally = Tally(session.clock.now_ms)
    (topic,) = watched(plan, (bounded.result,)).outputs
    line = stage.line(options.cut.kind)
    reading = stage.results(topic, tally)
    return Cutting(options.cut, bounded, line, tally, reading, screen, session.clock)


@dataclass(slots=True)
class Changing:
    """The move of a fragment to the other node, by `medusa move`, and then the loss of a node."""

    stage: Stage
    catalog: Catalog
    plan: Plan
    screen: PlainScreen | LiveScreen
    child: Child | None = None
    to: NodeId = SECOND
    epoch: Epoch = NO_EPOCH
    lost: Mapping[FragmentId, Epoch] | None = None

    @property
    def then(self) -> tuple[Then, ...]:
        """What is done during the feed."""
        return (1 / 2, self._move), (3 / 4, self._kill)

    def _move(self) -> None:
        fragment, owners = movable(self.plan), self._owners()
        owner = owners.get(fragment)
        nodes = {one.node for one in self.catalog.nodes.all()}
        self.to = min(nodes - {owner.node if owner else SECOND})
        self.epoch = owner.epoch if owner else NO_EPOCH
        self.screen.step(f"moving {fragment} to {self.to}: medusa move")
        self.child = self.stage.move(fragment, self.to)

    def _kill(self) -> None:
        ran = {name: one.epoch for name, one in self._owners().items() if one.node == SECOND}
        self.screen.step(f"killing {SECOND}, which runs {counted(len(ran), 'fragment')}: kill -9")
        self.stage.kill_second()
        self.lost = ran

    def end(self) -> tuple[Moved | None, Lost | None]:
        """Compute the pauses; None: there was no move, or no loss.

        Raises:
            EnvironmentProblem: the move failed, with its last output.
        """
        if self.child is None:
            return None, None
        self.stage.await_end(self.child, "medusa move")
        fragment = movable(self.plan)
        moved = Moved(fragment, self.to, self._pause_ms(fragment, self.epoch))
        if self.lost is None:
            return moved, None
        pauses = [self._pause_ms(name, epoch) for name, epoch in self.lost.items()]
        known = [pause for pause in pauses if pause is not None]
        return moved, Lost(SECOND, len(self.lost), max(known, default=None))

    def _owners(self) -> dict[FragmentId, OwnerRecord]:
        return self.catalog.owners.of(self.plan.network)

    def _pause_ms(self, fragment: FragmentId, epoch: Epoch) -> int | None:
        markers = read_markers(fragment, self.stage.records(), self.stage.topics())
        return pause_after_ms(markers, epoch)


def _report(session: Session, verdict: Verdict) -> None:
    """Print the verdict on stdout and set the exit code."""
    session.printer.show(
        {
            "right": verdict.right,
            "fed": verdict.fed,
            "complete": verdict.complete,
            "dead_letters": verdict.dead_letters,
            "dead_letters_wrong": len(verdict.wrong_letters),
            "memory_bytes": verdict.memory_bytes,
            "moved": _moved(verdict),
            "lost": _lost(verdict),
            "cut": None if verdict.cut is None else as_data(verdict.cut),
            "outputs": [
                {
                    "name": c.name,
                    "expected": c.expected,
                    "seen": c.seen,
                    "right": c.right,
                    "missing": len(c.missing),
                    "unexpected": len(c.unexpected),
                    "duplicated": len(c.duplicated),
                    "different": len(c.different),
                }
                for c in verdict.comparisons
            ],
        },
        "\n".join(as_lines(verdict)),
    )
    if not verdict.right:
        click.get_current_context().exit(ExitCode.FAILED)


def _moved(verdict: Verdict) -> JsonObject | None:
    moved = verdict.moved
    if moved is None:
        return None
    return {"fragment": str(moved.fragment), "to": moved.to, "pause_ms": moved.pause_ms}


def _lost(verdict: Verdict) -> JsonObject | None:
    lost = verdict.lost
    if lost is None:
        return None
    return {"node": lost.node, "fragments": lost.fragments, "pause_ms": lost.pause_ms}


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a closed terminal, interrupt the block as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
