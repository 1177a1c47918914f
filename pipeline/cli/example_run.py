"""Runs an example from an empty folder to the verdict, and cleans up behind it."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from pipeline.cli.commands.init import template_files
from pipeline.cli.detached import medusa_command
from pipeline.cli.example_screen import LiveScreen, PlainScreen, screen_for
from pipeline.cli.modules import PROJECTS
from pipeline.cli.progress import StepPrinter
from pipeline.cli.session import Session
from pipeline.deploy.documents import read_document
from pipeline.errors import ExitCode
from pipeline.examples.collect import Collected, watched
from pipeline.examples.example import DOCUMENT, PRODUCER, Example
from pipeline.examples.judge import DeadLetterCheck, compared, newest_ms
from pipeline.examples.memory import Peak
from pipeline.examples.run import Run, World
from pipeline.examples.stage import Feed, Stage, choose_place, write_project
from pipeline.examples.verdict import Verdict, as_lines
from pipeline.ids import Millis
from pipeline.network.drawing.picture import picture
from pipeline.network.drawing.text import as_text
from pipeline.planner import planner
from pipeline.reference.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which example runs, what is fed, and how it is shown.

    Args:
        label: before every line, and in the name of the folder.
        keep: whether the folder stays when all was right.
    """

    example: Example
    feed: Feed
    label: str
    keep: bool


def run_example(session: Session, wanted: Wanted) -> None:
    """Run it, print the verdict, and end with the exit code that says whether all was right."""
    cache = Path(session.settings.cache)
    java = find_java(os.environ)
    ensure_jars(cache, lambda: java, StepPrinter(session.printer))
    folder = Path(tempfile.mkdtemp(prefix=f"medusa-{wanted.label}-"))
    terminal = sys.stderr.isatty()
    with _signals_interrupt():
        finished = False
        try:
            with screen_for(session.printer, wanted.label, terminal=terminal) as screen:
                verdict = _perform(session, folder, wanted, screen)
            finished = verdict.right
        except KeyboardInterrupt:
            finished = True
            raise
        finally:
            if wanted.keep or not finished:
                session.printer.note(f"[{wanted.label}] logs and data are in {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    _tell(session, verdict)


def _perform(
    session: Session, folder: Path, wanted: Wanted, screen: PlainScreen | LiveScreen
) -> Verdict:
    """The whole play, from the empty folder to the verdict; all processes have ended after it."""
    example = wanted.example
    place = choose_place(folder, Path(session.settings.cache))
    write_project(place, example, template_files(resources.files(PROJECTS) / example.name))
    # The project names its schemas by file, so nothing is asked of a registry.
    network = read_document(folder / DOCUMENT, lambda _: None).network
    owner = session.participant
    plan = planner.plan(network, owner)
    peak = Peak(os.getpid())
    with Stage(place, medusa_command, session.clock) as stage:
        screen.step("starting Kafka, ZooKeeper, the schema registry and a node: medusa up")
        catalog = stage.up()
        screen.step("registering the schemas and deploying the network: medusa deploy")
        stage.deploy()
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
        )
        decoding = stage.decoding()
        run = Run(world, Collected(watched(plan, example.results), decoding.result))
        run.await_running()
        screen.step(f"feeding {example.fed}: {' '.join((PRODUCER, *wanted.feed.arguments))}")
        run.watch(stage.feed(wanted.feed), wanted.feed.seconds)
        given = run.inputs(network, decoding)
        until_ms = Millis(newest_ms(given, network) + example.settle_ms)
        complete = run.settle(until_ms)
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
    )


def _tell(session: Session, verdict: Verdict) -> None:
    """The verdict on stdout, and the exit code."""
    session.printer.show(
        {
            "right": verdict.right,
            "fed": verdict.fed,
            "complete": verdict.complete,
            "dead_letters": verdict.dead_letters,
            "dead_letters_wrong": len(verdict.wrong_letters),
            "memory_bytes": verdict.memory_bytes,
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


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """A request to end, and the end of the terminal, stop a run as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
