"""Examples as a user runs them: correct results, and no processes left after any end."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.cut import CutKind
from pipeline.examples.tolls import TOLLS

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

MARK = "MEDUSA_TEST_MARK"
FEEDING_WITHIN_S = 240.0
ENDED_WITHIN_S = 90.0


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A running example, and the mark in the environment of all its processes."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, "TMPDIR": str(folder)}
    command = [sys.executable, "-P", "-m", "pipeline.cli.main", *arguments]
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=Path.cwd())
        try:
            yield process, mark
        finally:
            process.kill()
            process.wait(30)


def output(folder: Path) -> str:
    """The run's output so far."""
    return (folder / "out").read_text(encoding="utf-8", errors="replace")


def marked(mark: str) -> dict[int, str]:
    """All running processes with a mark in their environment: id and command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry.name)] = line.decode(errors="replace")[:120]
        except OSError:
            continue  # it ended, or belongs to another user
    return found


def wait_until_ended(mark: str) -> dict[int, str]:
    """Wait until no marked process runs; returns those left at the timeout."""
    ends_at = time.monotonic() + ENDED_WITHIN_S
    while (left := marked(mark)) and time.monotonic() < ends_at:
        time.sleep(0.2)
    return left


OTHERS = pytest.mark.second_tier("the demo runs one example, the fault matrix the others")
CUTS = pytest.mark.second_tier("forks on real servers are in tests/system/lanes")
COMMANDS = [
    pytest.param(("demo", "--seconds", "25"), id="demo"),
    *(
        pytest.param(
            ("example", "run", "tolls", "--cut", kind.value, "--for", "20s"),
            id=f"tolls-{kind.value}",
            marks=CUTS,
        )
        for kind in CutKind
    ),
    *(
        pytest.param(("example", "run", name, "--seconds", "20"), id=name, marks=OTHERS)
        for name in EXAMPLES
        if name != TOLLS.name
    ),
]
"""The demo is the toll example."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_result_of_an_example_is_correct(tmp_path: Path, command: tuple[str, ...]) -> None:
    """It exits with 0 and prints the number of compared results; no process is left."""
    with running(tmp_path, *command) as (process, mark):
        code = process.wait(800)
        assert code == 0, output(tmp_path)
        count = re.search(r"^All ([\d,]+) results are right\.$", output(tmp_path), re.MULTILINE)
        assert count is not None
        assert int(count.group(1).replace(",", "")) > 500
        assert wait_until_ended(mark) == {}
    assert list(tmp_path.glob("medusa-*")) == []


MILDER = pytest.mark.second_tier(
    "what survives nothing after SIGKILL survives no milder signal; test_stopping.py sends those"
)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=MILDER),
        pytest.param(signal.SIGTERM, 130, marks=MILDER),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_no_process_survives_a_run(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Any signal during its feed ends servers, node and producer."""
    with running(tmp_path, "demo", "--seconds", "300") as (process, mark):
        ends_at = time.monotonic() + FEEDING_WITHIN_S
        while "feeding" not in output(tmp_path):
            assert process.poll() is None, output(tmp_path)
            assert time.monotonic() < ends_at, output(tmp_path)
            time.sleep(0.2)
        assert len(marked(mark)) > 5
        process.send_signal(number)
        assert process.wait(ENDED_WITHIN_S) == code
        assert wait_until_ended(mark) == {}
