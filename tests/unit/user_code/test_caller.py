"""Functions in real child processes: no failure of theirs stops the caller."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.network import type_text
from pipeline.user_code import caller
from pipeline.user_code.caller import (
    Caller,
    EndedError,
    LoadError,
    RaisedError,
    StartError,
)
from pipeline.user_code.function import Function
from tests.conftest import WaitFor

SOURCE = """
import os, sys, time
import pyarrow as pa

class Odd(Exception):
    def __str__(self):
        raise RuntimeError("cannot be shown")

def do(batch):
    '''Does what the first row says.'''
    for what in batch.column("what").to_pylist()[:1]:
        if what == "raise":
            raise ValueError("first line\\nlast \\x1b[31mline")
        if what == "long":
            raise ValueError("x" * 5_000)
        if what == "odd":
            raise Odd
        if what == "exit":
            sys.exit(3)
        if what == "end":
            os._exit(4)
        if what == "crash":
            os.abort()
        if what == "hang":
            time.sleep(3600)
        if what == "print":
            print("no answer")
            os.write(1, b"nor this")
            sys.stdout.buffer.write(b"x" * 100_000)
        if what == "read":
            sys.stdin.read()
        if what == "secret":
            return pa.record_batch({"made": [os.environ.get("KAFKA_PASSWORD", "none")]})
        if what == "wrong":
            return batch
        if what == "pid":
            return pa.record_batch({"made": [str(os.getpid())]})
    return pa.record_batch({"made": batch.column("what"), })
"""
COLUMNS = (type_text.read_column("made", "STRING NOT NULL"),)


def function(
    name: str = "things.py:do", source: str = SOURCE, timeout_ms: int = 10_000
) -> Function:
    """A function of a file."""
    return Function(name, source, COLUMNS, timeout_ms)


def request(*what: str) -> pa.RecordBatch:
    """A batch for it."""
    return pa.record_batch({"what": pa.array(what, pa.string())})


def response(calls: Caller, *what: str) -> list[str]:
    """The returned rows."""
    return [row["made"] for row in calls.call(request(*what)).to_pylist()]


@pytest.fixture(scope="module")
def reused() -> Iterator[Caller]:
    """A process for several tests."""
    with Caller(function()) as calls:
        yield calls


def test_a_function_gets_no_secrets_of_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the node is not passed to user code."""
    monkeypatch.setenv("KAFKA_PASSWORD", "of Kafka")
    with Caller(function()) as calls:
        assert response(calls, "secret") == ["none"]


def test_rows_are_processed_in_one_process() -> None:
    """Many, few and none; printed text is no response, and standard input is empty."""
    with Caller(function()) as calls:
        assert response(calls, *("x" * 1_000,) * 1_000) == ["x" * 1_000] * 1_000
        assert response(calls) == []
        assert response(calls, "print") == ["print"]
        assert response(calls, "read", "b") == ["read", "b"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raise", "last \\x1b[31mline (things.py:13)"),
        ("long", "ValueError: " + "x" * 387 + "… (things.py:15)"),
        ("odd", "Odd: <exception str() failed> (things.py:17)"),
        ("exit", "SystemExit: 3 (things.py:19)"),
        ("wrong", "it returned no column made, only what"),
    ],
)
def test_an_exception_is_reported_with_its_line(reused: Caller, what: str, why: str) -> None:
    """The last line of a traceback, bounded; the process is reused."""
    pid = response(reused, "pid")
    with pytest.raises(RaisedError) as caught:
        reused.call(request(what))
    assert str(caught.value) == why
    assert response(reused, "pid") == pid


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("end", "it ended its process with exit code 4"),
        ("crash", "its process was ended by SIGABRT"),
        ("hang", "it did not return within 500ms"),
    ],
)
def test_a_process_that_ends_is_replaced(what: str, why: str) -> None:
    """A hang is ended by the kernel; the next call starts a new process."""
    with Caller(function(timeout_ms=500)) as calls:
        with pytest.raises(EndedError) as caught:
            calls.call(request(what))
        assert str(caught.value) == why
        assert response(calls, "good") == ["good"]


def test_a_function_that_blocks_the_alarm_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has a separate deadline."""
    monkeypatch.setattr(caller, "GRACE_S", 0.5)
    source = "import signal, time\ndef do(batch):\n    signal.setitimer(signal.ITIMER_REAL, 0)\n"
    source += "    time.sleep(3600)\n"
    calls = Caller(function(source=source, timeout_ms=100))
    with calls, pytest.raises(EndedError, match="it did not return within 100ms"):
        calls.call(request("x"))


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("things.py:do", "def other(b): ...", "AttributeError: there is no do in things.py"),
        ("things.py:do", "do = 5", "TypeError: do in things.py is a int, not a function"),
        ("things.py:do", "async def do(b): ...", "TypeError: do in things.py is an async function"),
        ("things.py:do", "async def do(b): yield b", "do in things.py is an async function"),
        ("things.py:do", "def do(a, b): ...", "TypeError: do has to take one argument"),
        ("things.py:do", "\ndef do(", "SyntaxError: '(' was never closed (things.py:2)"),
        (
            "things.py:do",
            "\n\neval('1 +')",
            "SyntaxError: invalid syntax (<string>:1, things.py:3)",
        ),
        (
            "things.py:do",
            "compile('(', '\x1b[31m', 'exec')",
            "'(' was never closed (\\x1b[31m:1, things.py:1)",
        ),
        ("things.py:do", "raise SyntaxError('x', (5, 's', 0, ''))", "(things.py:1)"),
        (
            "a/things.py:do",
            "import os\nimport no_such_module",
            "ModuleNotFoundError: No module named 'no_such_module' (things.py:2)",
        ),
        (
            "things.py:do",
            "import json\ndef deep():\n    json.loads('{')\ndeep()",
            "column 2 (char 1) (things.py:3)",
        ),
        ("things.py:do", "import sys\nsys.exit()", "SystemExit (things.py:2)"),
        ("things.py:do", "import sys\nsys.exit('bye')", "SystemExit: bye (things.py:2)"),
        ("things.py:do", "import os; os._exit(7)", "it ended its process with exit code 7"),
        ("things.py:do", "while True: pass", "it did not return within 500ms"),
        ("no_such_module:do", "", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:do", "", "AttributeError: there is no do in json"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_reported(
    name: str, source: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any row is passed."""
    monkeypatch.setattr(caller, "LOAD_S", 0.5)
    with Caller(function(name, source)) as calls:
        with pytest.raises(LoadError) as caught:
            calls.load()
        assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\nimport no_such_module", "No module named 'no_such_module' (of_tests.py:2)"),
        ("x = (1\n", "SyntaxError: '(' was never closed (of_tests.py:1)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_with_its_line(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The innermost line of the module itself, not of what it imports."""
    (tmp_path / "of_tests.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', Path.cwd())}")
    with Caller(function("of_tests:do", "")) as calls, pytest.raises(LoadError) as caught:
        calls.load()
    assert str(caught.value).endswith(why)


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.fork()\nimport pyarrow as pa\ndef do(batch):\n",
        "import os\nimport pyarrow as pa\ndef do(batch):\n    os.fork()\n",
        "import os\nimport pyarrow as pa\ndef do(batch):\n    if not os.fork(): 1 / 0\n",
    ],
)
def test_a_fork_of_the_process_sends_no_response(
    source: str, capfd: pytest.CaptureFixture[str], wait_for: WaitFor
) -> None:
    """It is ended when the user's code returns in it, and that is reported."""
    source += "    return pa.record_batch({'made': batch.column('what')})\n"
    with Caller(function(source=source)) as calls:
        for _ in range(3):
            assert response(calls, "a", "b") == ["a", "b"]
        words = "called os.fork(), and the copy of its process came back"
        wait_for(lambda: words in capfd.readouterr().err, "it is told")


def test_a_process_that_leaves_a_fork_has_ended() -> None:
    """As a daemon does: the fork does not replace it."""
    source = "import os\nif os.fork():\n    os._exit(0)\ndef do(batch): return batch\n"
    calls = Caller(function(source=source))
    with calls, pytest.raises(LoadError, match="it ended its process with exit code 0"):
        calls.load()


def test_an_installed_module_is_called_by_its_name() -> None:
    """Here one of the standard library, which fails for batches."""
    calls = Caller(function("json:dumps", ""))
    with calls, pytest.raises(RaisedError, match="TypeError: Object of type RecordBatch is not"):
        calls.call(request("x"))


def test_a_python_that_does_not_start_is_not_the_fault_of_the_function(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The function was not called."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    monkeypatch.setattr(caller, "START_S", 0.1)
    monkeypatch.setattr(caller, "LOAD_S", 0.1)
    with Caller(function(timeout_ms=100)) as calls, pytest.raises(StartError):
        calls.load()


def test_a_closed_caller_leaves_no_resources(wait_for: WaitFor) -> None:
    """Neither the process nor its children, nor an open pipe."""
    source = (
        "import os, subprocess, pyarrow as pa\n"
        "def do(batch):\n"
        "    child = subprocess.Popen(['sleep', '3600'])\n"
        "    return pa.record_batch({'made': [f'{os.getpid()} {child.pid}'] * batch.num_rows})\n"
    )
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Caller(function(source=source)) as calls:
        pids = response(calls, "x")[0].split()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    wait_for(lambda: not any(runs(pid) for pid in pids), "all are gone")


def runs(pid: str) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_ends_with_its_parent(wait_for: WaitFor) -> None:
    """Its requests end then, however that process ended."""
    program = (
        "import os, sys\n"
        "from tests.unit.user_code.test_caller import *\n"
        "calls = Caller(function(source='import os, pyarrow as pa\\ndef do(b):\\n"
        '    return pa.record_batch({"made": [str(os.getpid())]})\'))\n'
        "print(response(calls, 'x')[0], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    pid = done.stdout.strip()
    assert pid, done.stderr
    wait_for(lambda: not runs(pid), "the child is gone")


def test_the_time_limit_is_per_call() -> None:
    """Several within the limit may take longer together."""
    source = "import time, pyarrow as pa\ndef do(b):\n    time.sleep(0.3)\n"
    source += "    return pa.record_batch({'made': b.column('what')})\n"
    since = time.monotonic()
    with Caller(function(source=source, timeout_ms=800)) as calls:
        for _ in range(4):
            response(calls, "x")
    assert time.monotonic() - since > 0.8


def test_the_first_call_does_not_import_arrow() -> None:
    """Its time is the function's alone, also on a machine where an import takes seconds."""
    source = "import sys, pyarrow as pa\ndef do(b):\n    before = set(sys.modules)\n"
    source += "    texts = pa.array(b.column('what').to_pylist())\n"
    source += "    pa.record_batch({'made': texts}).take(pa.array([0]))\n"
    source += "    return pa.record_batch({'made': [str(set(sys.modules) - before)]})\n"
    with Caller(function(source=source)) as calls:
        assert response(calls, "x") == [str(set())]
