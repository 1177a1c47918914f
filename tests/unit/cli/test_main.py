import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml

from pipeline.cli.main import COMMANDS
from pipeline.errors import DocumentError, ExitCode, Problem, UnavailableError

Caller = Callable[..., Any]


def _command_that_raises(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, name: str = "show"
) -> None:
    @click.command(name)
    @click.option("-o", "--output")
    @click.option("-v", "--verbose", is_flag=True)
    def command(**_options: object) -> None:
        raise error

    module = ModuleType(COMMANDS[name].module)
    module.command = command  # type: ignore[attr-defined] # a module made for the test
    monkeypatch.setitem(sys.modules, COMMANDS[name].module, module)


def test_every_command_has_help_with_an_example(medusa: Caller) -> None:
    """`medusa VERB --help` works for every verb of the table."""
    for name in COMMANDS:
        called = medusa(name, "--help")
        assert called.code == 0, name
        assert called.out.startswith(f"Usage: medusa {name}"), name


def test_unknown_command_is_a_usage_error_with_a_guess(medusa: Caller) -> None:
    """A mistyped verb ends with 64 and names the nearest one, on stderr only."""
    called = medusa("deplyo")
    assert called.code == ExitCode.USAGE
    assert "did you mean 'deploy'" in called.err
    assert called.out == ""


def test_unknown_option_is_a_usage_error(medusa: Caller) -> None:
    """An option that does not exist ends with 64, not with click's own 2."""
    called = medusa("config", "show", "--nonsense")
    assert called.code == ExitCode.USAGE
    assert "--nonsense" in called.err


def test_no_command_prints_help_and_is_a_usage_error(medusa: Caller) -> None:
    """`medusa` alone prints the verbs."""
    called = medusa()
    assert called.code == ExitCode.USAGE
    assert "deploy" in called.err


@pytest.mark.parametrize("spelling", [("-o", "json"), ("--output=json",), ("-ojson",)])
def test_errors_are_data_with_json_output(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch, spelling: tuple[str, ...]
) -> None:
    """With -o json an error is an object on stdout, and its text is still on stderr."""
    _command_that_raises(
        monkeypatch, UnavailableError("no answer", place="kafka", hint="is it up?")
    )
    called = medusa("show", *spelling)
    assert called.code == ExitCode.UNAVAILABLE
    assert called.data["error"] == {
        "code": "unavailable",
        "message": "no answer",
        "place": "kafka",
        "hint": "is it up?",
    }
    assert "error: kafka: no answer" in called.err


def test_every_problem_of_a_document_is_printed(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its place; as data they are structured."""
    problems = (
        Problem("there is no column spede", "network.yaml", 12, "tolls", "spede", ("speed",)),
        Problem("there is no stream x", "network.yaml", 14),
    )
    _command_that_raises(monkeypatch, DocumentError(problems))
    called = medusa("show", "-o", "yaml")
    assert called.code == ExitCode.BAD_INPUT
    assert "network.yaml:12, box tolls, column spede: there is no column spede" in called.err
    found = yaml.safe_load(called.out)["error"]["problems"]
    assert [p["line"] for p in found] == [12, 14]
    assert found[0]["choices"] == ["speed"]


def test_interrupt_ends_with_130(medusa: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C prints no trace."""
    _command_that_raises(monkeypatch, KeyboardInterrupt())
    called = medusa("show")
    assert called.code == ExitCode.INTERRUPTED
    assert "Traceback" not in called.err


def test_a_bug_is_one_line_and_a_file(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An unexpected error ends with 1 and two lines; the trace is shown only with -v."""
    _command_that_raises(monkeypatch, ZeroDivisionError("oh"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    called = medusa("show")
    assert called.code == ExitCode.FAILED
    assert "this is a bug in medusa (ZeroDivisionError: oh)" in called.err
    assert "Traceback" not in called.err
    (trace,) = tmp_path.glob("medusa-crash-*.log")
    assert str(trace) in called.err
    assert trace.read_text(encoding="utf-8").startswith("Traceback")
    assert trace.stat().st_mode & 0o077 == 0
    assert "Traceback" in medusa("show", "-v").err


def test_help_is_fast_because_it_imports_no_command() -> None:
    """The help imports no module of a verb, and no driver."""
    started = time.monotonic()
    import subprocess  # noqa: PLC0415 - a fresh interpreter is what is measured

    script = (
        "import sys; from pipeline.cli.main import run; run(['--help']);"
        "heavy = {'pyspark', 'confluent_kafka', 'kazoo', 'sqlglot', 'pandas', 'pyarrow'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 20
