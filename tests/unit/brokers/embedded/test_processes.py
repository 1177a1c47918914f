import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.embedded import processes
from brokers.embedded.control import process_born
from brokers.embedded.processes import Child, ChildSpec, start_child
from pipeline.errors import EnvironmentProblem
from tests.conftest import WaitFor

SLEEP = ("/bin/sleep", "60")
DEAF = ("/bin/sh", "-c", "trap '' TERM; echo ready; while true; do sleep 0.05; done")
"""Does not end when asked."""


def spec(folder: Path, command: tuple[str, ...], grace_s: float = 5.0) -> ChildSpec:
    """A child with its output in the folder."""
    return ChildSpec("child", command, folder / "child.out", folder, grace_s=grace_s)


@contextmanager
def running(wanted: ChildSpec) -> Iterator[Child]:
    """A child that ends with the block."""
    child = start_child(wanted)
    try:
        yield child
    finally:
        child.stop()


def alive(pid: int) -> bool:
    """Whether such a process exists, other than as a zombie."""
    return process_born(pid) is not None


def test_a_child_ends_when_it_is_stopped(tmp_path: Path) -> None:
    """Stopping waits until the process is gone; stopping again does nothing."""
    child = start_child(spec(tmp_path, SLEEP))
    assert child.running
    assert alive(child.pid)
    child.stop()
    child.stop()
    assert child.exit_code == 128 + signal.SIGTERM
    assert not alive(child.pid)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path, wait_for: WaitFor) -> None:
    """SIGKILL follows after the grace period."""
    with running(spec(tmp_path, DEAF, grace_s=0.2)) as child:
        wait_for(lambda: child.last_lines() == "ready", "the child has set its trap")
        child.stop()
        assert child.exit_code == 128 + signal.SIGKILL
        assert not alive(child.pid)


def test_children_of_a_child_end_with_it(tmp_path: Path, wait_for: WaitFor) -> None:
    """The rest of its process group is killed."""
    command = ("/bin/sh", "-c", "sleep 60 & echo $!; wait")
    with running(spec(tmp_path, command)) as child:
        wait_for(lambda: child.last_lines().isdigit(), "the grandchild is there")
        grandchild = int(child.last_lines())
        assert alive(grandchild)
    wait_for(lambda: not alive(grandchild), "the grandchild has ended")


def test_the_exit_code_is_the_childs(tmp_path: Path, wait_for: WaitFor) -> None:
    """A child that ends by itself has ended, with its own code."""
    with running(spec(tmp_path, ("/bin/sh", "-c", "echo broken >&2; exit 7"))) as child:
        wait_for(lambda: not child.running, "the child has ended")
        assert child.exit_code == 7
        assert child.last_lines() == "broken"


def test_a_failure_contains_the_last_log_lines_of_this_start(
    tmp_path: Path, wait_for: WaitFor
) -> None:
    """Without lines of earlier starts; with the path of the whole log."""
    (tmp_path / "child.out").write_text("an old story\n")
    command = ("/bin/sh", "-c", "for n in 1 2 3; do echo line $n; done; exit 1")
    with running(spec(tmp_path, command)) as child:
        wait_for(lambda: not child.running, "the child has ended")
        message = str(child.failure("it failed"))
    assert "child: it failed; its last lines:\n    line 1\n    line 2\n    line 3" in message
    assert "old story" not in message
    assert str(tmp_path / "child.out") in message


def test_a_missing_program_is_an_environment_problem(tmp_path: Path) -> None:
    """The error names the program."""
    with pytest.raises(EnvironmentProblem, match="no-such-program"):
        start_child(spec(tmp_path, ("/no-such-program",)))


def test_a_read_only_folder_is_an_environment_problem(tmp_path: Path) -> None:
    """The error is about the log, which cannot be opened."""
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="cannot be started"):
        start_child(spec(tmp_path / "file", SLEEP))


def test_a_large_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One older log is kept, so that logs stay bounded over many starts."""
    monkeypatch.setattr(processes, "_LOG_BYTES_MAX", 10)
    (tmp_path / "child.out").write_text("more than ten bytes")
    with running(spec(tmp_path, SLEEP)):
        assert (tmp_path / "child.out.1").read_text() == "more than ten bytes"
        assert (tmp_path / "child.out").stat().st_size == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_children_end_with_their_parent(
    tmp_path: Path, wait_for: WaitFor, how: signal.Signals
) -> None:
    """However the parent ends, `kill -9` included."""
    program = textwrap.dedent(f"""
        import signal, sys, threading
        from pathlib import Path
        from brokers.embedded.processes import ChildSpec, start_child

        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started us may ignore it

        def start():
            spec = ChildSpec("child", {SLEEP!r}, Path("child.out"), Path("."))
            print(start_child(spec).pid, flush=True)

        # Started from a thread that ends: the child's life hangs on the process, not on the thread.
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        sys.stdin.read()
        """)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.send_signal(how)
        parent.wait(10)
        wait_for(lambda: not alive(child), "the child has ended")


if sys.platform.startswith("linux"):  # the kernel helps there only

    def test_a_child_ends_with_its_guard(tmp_path: Path, wait_for: WaitFor) -> None:
        """Killing every Python process at once leaves no server running."""
        with running(spec(tmp_path, SLEEP)) as child:
            guard = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(guard, signal.SIGKILL)
            wait_for(lambda: not alive(child.pid), "the child has ended")
