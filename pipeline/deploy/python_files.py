"""Networks described in Python files, which are run in a child process.

The child has a timeout and returns plain data: see `pipeline/builder/run.py` and the decision about
Python files.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pipeline import yaml_reader
from pipeline.builder import run
from pipeline.errors import DocumentError, Problem
from pipeline.network import yaml_writer
from pipeline.network.written import Place, Written, node_from_data

SUFFIX: Final = ".py"
WITHIN_S: Final = 30.0
"""Timeout of a file's execution."""

_START_S: Final = 30.0
"""Additional time for Python itself to start on a busy machine."""
_ANSWER_MAX: Final = 16_000_000
"""Maximum bytes of an answer; that of the largest document that can be read is far smaller."""


def read_python(path: Path, within_s: float = WITHIN_S) -> Written:
    """Run a Python file and return the network that it describes, not yet validated.

    Raises:
        DocumentError: the file fails, does not end in time, or describes no network; or its network
            is too large for a document.
    """
    answer, how = _answer(path, within_s)
    try:
        data = json.loads(answer)
        problems = tuple(_problem(one) for one in data.get("problems", ()))
        if not problems:
            places = tuple(Place(file, line) for file, line in data["places"])
            written = Written(node_from_data(data["tree"]), str(path), places=places)
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"nothing was described: the process that ran the file ended {how}"
        problems = (Problem(message, str(path)),)
    if problems:
        raise DocumentError(problems)
    return written


def text_of(written: Written) -> str:
    """The YAML text of a described network, which a deploy stores.

    Raises:
        DocumentError: the text is too long to be read again.
    """
    assert written.tree is not None  # noqa: S101 - a description always has a tree
    text = yaml_writer.write(written.tree)
    _, problems = yaml_reader.read(text, written.file)
    if problems:
        # Line numbers of a generated text would only confuse: the user cannot see it.
        raise DocumentError(tuple(replace(problem, line=0) for problem in problems))
    return text


def _answer(path: Path, within_s: float) -> tuple[str, str]:
    """The child's output, empty if it was killed, and how it ended, in words."""
    with tempfile.TemporaryFile() as answer:
        number = str(answer.fileno())
        command = [sys.executable, "-P", "-m", run.__name__, str(path), str(within_s), number]
        # In a session of its own, so that processes that the file started end with it.
        with subprocess.Popen(  # noqa: S603 - our own program, the user's file as an argument
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=(answer.fileno(),),
            start_new_session=True,
        ) as child:
            try:
                how = _in_words(child.wait(within_s + _START_S))
            except subprocess.TimeoutExpired:
                return "", "only when it was killed"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        answer.seek(0)
        return answer.read(_ANSWER_MAX).decode("utf-8", errors="replace"), how


def _in_words(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"


def _problem(data: dict[str, Any]) -> Problem:
    return Problem(**{**data, "choices": tuple(data["choices"])})
