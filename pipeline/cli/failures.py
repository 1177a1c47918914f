"""How a failed command ends: what is said, in which format, and with which exit code."""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from pipeline.cli.output import SCHEMA_VERSION, Format
from pipeline.errors import DocumentError, ExitCode, MedusaError, Problem
from schemas.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class Manner:
    """How the user wants to hear of an error, as far as it can be seen before parsing."""

    format: Format
    verbose: bool


def manner_of(arguments: Sequence[str]) -> Manner:
    """Read `-o` and `-v` straight from the arguments: an error may come before they are parsed."""
    found = Format.TABLE
    known = {f.value: f for f in Format}
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        following = arguments[position + 1] if position + 1 < len(arguments) else ""
        if argument in {"-o", "--output"}:
            found = known.get(following, found)
        elif argument.startswith("--output="):
            found = known.get(argument.removeprefix("--output="), found)
        elif argument.startswith("-o"):
            found = known.get(argument.removeprefix("-o"), found)
    verbose = any(a in {"-v", "--verbose"} for a in arguments)
    return Manner(found, verbose)


def tell(error: MedusaError, manner: Manner) -> ExitCode:
    """Print an error of ours: text on stderr, and the same as data on stdout if that is wanted."""
    _print(f"error: {error}")
    _print_data(manner, _as_data(error))
    if manner.verbose:
        _print("".join(traceback.format_exception(error)).rstrip())
    return error.exit_code


def tell_usage(error: click.ClickException, manner: Manner) -> ExitCode:
    """Print what was typed wrongly, with how it is typed."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help says more." if context else ""
    if context:
        _print(context.get_usage())
    _print(f"error: {error.format_message()}" + (f"\n  hint: {hint}" if hint else ""))
    _print_data(manner, {"code": "usage", "message": error.format_message(), "hint": hint})
    return ExitCode.USAGE


def tell_bug(error: Exception, manner: Manner) -> ExitCode:
    """Print one line about an error that nobody foresaw; the trace goes into a file."""
    trace = "".join(traceback.format_exception(error))
    place = _keep(trace)
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    hint = f"the trace is in {place}" if place else "call it again with -v to see the trace"
    _print(f"error: this is a bug in medusa ({what})\n  hint: {hint}; please report it.")
    _print_data(manner, {"code": "bug", "message": what, "hint": hint})
    if manner.verbose:
        _print(trace.rstrip())
    return ExitCode.FAILED


def _as_data(error: MedusaError) -> JsonObject:
    data: JsonObject = {
        "code": error.code,
        "message": error.message,
        "place": error.place,
        "hint": error.hint,
    }
    if isinstance(error, DocumentError):
        data["problems"] = [_problem(problem) for problem in error.problems]
    return data


def _problem(problem: Problem) -> JsonObject:
    return {
        "message": problem.message,
        "file": problem.file,
        "line": problem.line,
        "box": problem.box,
        "column": problem.column,
        "choices": list(problem.choices),
        "hint": problem.hint,
        "details": list(problem.details),
    }


def _keep(trace: str) -> Path | None:
    """Write the trace into a new file that only this user can read; None if that cannot be done."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="medusa-crash-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return None
    return Path(name)


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _print_data(manner: Manner, error: JsonObject) -> None:
    if manner.format is Format.TABLE:
        return
    # YAML is a superset of JSON, so one form serves both.
    document = {"schema_version": SCHEMA_VERSION, "error": error}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
