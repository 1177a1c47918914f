import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from brokers.embedded.control import (
    CONTROL_FORMAT,
    ControlFile,
    Member,
    Stopped,
    control_path,
    process_born,
    read_control,
    running_stack,
    stop_running,
    take_lock,
    write_control,
)
from pipeline.errors import EnvironmentProblem, RefusedError, RetryError
from pipeline.system_clock import SystemClock

MINE = ControlFile(
    pid=os.getpid(),
    born=process_born(os.getpid()) or "",
    started_at_ms=1_700_000_000_000,
    kafka_bootstrap_servers="127.0.0.1:9092",
    zookeeper_connect="127.0.0.1:2181/medusa",
    registry_url="http://127.0.0.1:8081",
    members=(Member("kafka", 17),),
    format=CONTROL_FORMAT,
)

HOLD = """
import os, signal, sys, time
from pathlib import Path
from brokers.embedded import control
from pipeline.system_clock import SystemClock
data = Path(sys.argv[1])
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = control.take_lock(data, SystemClock())
born = control.process_born(os.getpid())
control.write_control(data, control.ControlFile(os.getpid(), born, 0, "", "", "", (), 1))
print("held", flush=True)
time.sleep(60)
"""
"""A process that holds a data folder as a stack does."""


class HastyClock(SystemClock):
    """Real, but a hundred times as fast where time is waited for."""

    def monotonic_s(self) -> float:
        """Seconds, a hundredfold."""
        return super().monotonic_s() * 100


def holder(data: Path, how: str) -> "subprocess.Popen[bytes]":
    """Start a process that locks the folder, and wait for the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data), how],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_state_file_round_trips(tmp_path: Path) -> None:
    """The file contains all fields, and its format."""
    write_control(tmp_path, MINE)
    assert read_control(tmp_path) == MINE
    assert '"format": 1' in control_path(tmp_path).read_text()


def test_without_a_file_there_is_no_stack(tmp_path: Path) -> None:
    """A folder in which nothing ever ran has no running stack, and stopping it is no error."""
    assert running_stack(tmp_path) is None
    assert stop_running(tmp_path) is Stopped.NOTHING_RAN


def test_a_file_of_another_process_with_the_same_id_is_stale(tmp_path: Path) -> None:
    """A process is identified by its id and its start time."""
    write_control(tmp_path, MINE)
    assert running_stack(tmp_path) == MINE
    write_control(tmp_path, replace(MINE, born="long ago"))
    assert running_stack(tmp_path) is None


STORED = asdict(MINE)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": 1}',
        json.dumps({**STORED, "format": CONTROL_FORMAT + 1}),
        json.dumps({name: value for name, value in STORED.items() if name != "format"}),
    ],
)
def test_an_invalid_file_is_refused(tmp_path: Path, text: str) -> None:
    """Damaged ones and those of other versions, with the folder."""
    control_path(tmp_path).write_text(text)
    with pytest.raises(EnvironmentProblem, match=r"stack\.json") as caught:
        read_control(tmp_path)
    assert caught.value.place == str(tmp_path)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    """Without the advice to delete it."""
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="file is a file") as caught:
        running_stack(tmp_path / "file")
    assert "--data" in caught.value.hint


def test_a_second_stack_in_a_folder_is_refused(tmp_path: Path) -> None:
    """The error names the process that runs the first."""
    lock = take_lock(tmp_path, SystemClock())
    write_control(tmp_path, MINE)
    with pytest.raises(RefusedError, match=f"process {os.getpid()}"):
        take_lock(tmp_path, SystemClock())
    os.close(lock)
    os.close(take_lock(tmp_path, SystemClock()))


def test_servers_left_by_a_dead_stack_are_waited_for(tmp_path: Path) -> None:
    """While they hold the lock, the next start waits, with a limit."""
    lock = take_lock(tmp_path, SystemClock())
    write_control(tmp_path, replace(MINE, born="long ago"))
    with pytest.raises(RetryError, match="the end of the last stack"):
        take_lock(tmp_path, HastyClock())
    os.close(lock)


def test_a_folder_that_cannot_be_created_is_an_environment_problem(tmp_path: Path) -> None:
    """The error describes how to choose another folder."""
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="file is a file") as caught:
        take_lock(tmp_path / "file" / "data", SystemClock())
    assert "MEDUSA_DATA" in caught.value.hint


def test_a_running_stack_is_stopped(tmp_path: Path) -> None:
    """`stop_running` returns when the folder is free."""
    with holder(tmp_path, "polite") as process:
        assert stop_running(tmp_path, 20.0) is Stopped.ENDED
        assert process.wait(5) == -15
        os.close(take_lock(tmp_path, SystemClock()))


def test_a_stack_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """After the time limit."""
    with holder(tmp_path, "deaf") as process:
        assert stop_running(tmp_path, 0.3) is Stopped.KILLED
        assert process.wait(5) == -9
        assert read_control(tmp_path) is None
