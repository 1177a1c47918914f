"""`medusa demo`: the toll network on made-up traffic, every result compared with a reference."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from pipeline.cli.commands.init import template_files
from pipeline.cli.demo_screen import LiveScreen, PlainScreen, screen_for
from pipeline.cli.detached import medusa_command
from pipeline.cli.options import with_session
from pipeline.cli.progress import StepPrinter
from pipeline.cli.session import Session
from pipeline.demo.collect import Collected, watched
from pipeline.demo.document import rules_of
from pipeline.demo.history import judge, read_history
from pipeline.demo.memory import Peak
from pipeline.demo.run import Run, World
from pipeline.demo.stage import DOCUMENT, Stage, Traffic, choose_place, write_project
from pipeline.demo.verdict import Verdict, as_lines
from pipeline.deploy.documents import read_document
from pipeline.errors import ExitCode
from pipeline.ids import Millis, ParticipantId
from pipeline.network.drawing.picture import picture
from pipeline.network.drawing.text import as_text
from pipeline.planner import planner


@click.command("demo")
@click.option(
    "--seconds",
    type=click.FloatRange(min=15, max=3_600),
    default=60,
    envvar="DEMO_SECONDS",
    show_default=True,
    show_envvar=True,
    help="How long to feed; windows are 10 seconds long.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=100, max=5_000),
    default=500,
    show_default=True,
    help="Car sightings a second.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the made-up traffic.")
@click.option("--keep", is_flag=True, help="Keep the folder with logs and data.")
@with_session
def command(session: Session, *, seconds: float, rate: float, seed: int, keep: bool) -> None:
    """Run the toll network on made-up traffic and check every result.

    Starts servers and a node of its own in a temporary folder and on free ports, deploys the
    network of `medusa init tolls` with windows of 10 seconds, and feeds it from an ordinary Kafka
    producer. At the end every result is compared with one that was computed record by record, and
    everything that was started is stopped. Exit code 1 if a result is missing, wrong or one too
    many, or if there is a dead letter.

    \b
    Examples:
      medusa demo
      DEMO_SECONDS=120 medusa demo --rate 1000
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    cache = Path(session.settings.cache)
    java = find_java(os.environ)
    ensure_jars(cache, lambda: java, StepPrinter(session.printer))
    folder = Path(tempfile.mkdtemp(prefix="medusa-demo-"))
    with _signals_interrupt():
        finished = False
        try:
            with screen_for(session.printer, terminal=sys.stderr.isatty()) as screen:
                verdict = _perform(session, folder, Traffic(rate, seconds, seed), screen)
            finished = verdict.right
        except KeyboardInterrupt:
            finished = True
            raise
        finally:
            if keep or not finished:
                session.printer.note(f"[demo] logs and data are in {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    _tell(session, verdict)


def _perform(
    session: Session, folder: Path, traffic: Traffic, screen: PlainScreen | LiveScreen
) -> Verdict:
    """The whole play, from the empty folder to the verdict; all processes have ended after it."""
    place = choose_place(folder, Path(session.settings.cache))
    write_project(place, template_files(resources.files("pipeline.projects") / "tolls"))
    # The project names its schema by file, so nothing is asked of a registry.
    network = read_document(folder / DOCUMENT, lambda _: None).network
    plan = planner.plan(network, ParticipantId(session.settings.participant))
    peak = Peak(os.getpid())
    with Stage(place, medusa_command, session.clock) as stage:
        screen.step("starting Kafka, ZooKeeper, the schema registry and a node: medusa up")
        catalog = stage.up()
        screen.step("registering the schemas and deploying the network: medusa deploy")
        stage.deploy()
        world = World(
            plan=plan,
            graph=as_text(picture(network)),
            topics=stage.topics(),
            records=stage.records(),
            statuses=lambda: catalog.statuses(plan.network),
            check=stage.check,
            measure=peak.measure,
            screen=screen,
            clock=session.clock,
        )
        run = Run(world, Collected(watched(plan), stage.decoder()))
        run.await_running()
        screen.step(f"feeding: producer.py, {traffic.rate:g} sightings a second")
        run.watch(stage.feed(traffic), traffic.seconds)
        history = read_history(place.record)
        complete = run.settle(history.last_ms or Millis(0))
        screen.step("comparing with the reference, and stopping everything")
    collected = run.collected
    return Verdict(
        fed=len(history.sightings),
        complete=complete,
        comparisons=judge(
            history, rules_of(network), collected.notifications, collected.dispatches
        ),
        dead_letters=tuple(collected.dead_letters),
        memory_bytes=peak.bytes,
    )


def _tell(session: Session, verdict: Verdict) -> None:
    """The verdict on stdout, and the exit code."""
    data = {
        "right": verdict.right,
        "fed": verdict.fed,
        "complete": verdict.complete,
        "dead_letters": len(verdict.dead_letters),
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
    }
    session.printer.show(data, "\n".join(as_lines(verdict)))
    if not verdict.right:
        click.get_current_context().exit(ExitCode.FAILED)


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """A request to end, and the end of the terminal, stop the demo as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
