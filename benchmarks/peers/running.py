"""The peers' programs: fetched jars, sources compiled once for a stack, child processes."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Stack, child_side
from benchmarks.peers.programs import (
    COMPILER,
    HERE,
    NO_COMPILER,
    PEERS,
    Job,
    compile_command,
    has_compiler,
    run_command,
)
from benchmarks.readings import READING_JSON
from brokers.embedded.fetch import ensure_jars
from brokers.embedded.jars import JarSet
from brokers.embedded.java import find_java
from brokers.embedded.progress import Step
from pipeline.errors import MedusaError

COMPILED_WITHIN_S = 180.0
ANSWERED_WITHIN_S = 30.0


def peer_jars() -> JarSet:
    """The jars of all peers."""
    return JarSet(
        (HERE / "ivy.xml").read_text(encoding="utf-8"),
        (HERE / "jars.sha256").read_text(encoding="utf-8"),
    )


def prepare(stack: Stack, side: str) -> None:
    """Fetch a peer's jars and compile its program.

    Raises:
        SystemExit: Java has no compiler, or it refuses the program; or a jar cannot be fetched.
    """
    java = find_java(os.environ)
    listed = _output([str(java.executable), "--list-modules"], ANSWERED_WITHIN_S)
    if not has_compiler(listed.stdout):
        raise SystemExit(NO_COMPILER.format(java=java.executable))
    try:
        ensure_jars(stack.cache, lambda: java, _show, peer_jars())
    except MedusaError as error:
        raise SystemExit(str(error)) from error
    command = compile_command(
        java.executable, PEERS[side], _jars(stack, side), _classes(stack, side)
    )
    done = _output(command, COMPILED_WITHIN_S)
    if done.returncode:
        raise SystemExit(f"{COMPILER} refused the program of {side}:\n{done.stdout}{done.stderr}")


@contextmanager
def peer_side(
    stack: Stack, side: str, job: Job, result_schema: str
) -> Iterator["subprocess.Popen[str]"]:
    """A peer's job, running since its program was prepared; stopped at the end."""
    job.scratch.mkdir()
    job.reading_schema.write_text(READING_JSON, encoding="utf-8")
    job.result_schema.write_text(result_schema, encoding="utf-8")
    command = run_command(
        find_java(os.environ).executable,
        PEERS[side],
        _jars(stack, side),
        _classes(stack, side),
        job,
    )
    with child_side(command, job.scratch, side) as process:
        yield process


def _classes(stack: Stack, side: str) -> Path:
    return stack.folder / "peers" / side


def _jars(stack: Stack, side: str) -> tuple[Path, ...]:
    folder, jars = peer_jars().folder(stack.cache), peer_jars().jars
    return tuple(folder / jar.path for jar in jars if jar.path.startswith(f"{side}/"))


def _output(command: list[str], within_s: float) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False)


def _show(step: Step) -> None:
    if step.done == step.total:
        print(f"{step.what}: {step.total}", flush=True)
