"""Error reports of failed commands: text on stderr, JSON or YAML on stdout, the exit code."""

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
class ErrorFormat:
    """Format of an error report."""

    format: Format
    verbose: bool


def error_format(arguments: Sequence[str]) -> ErrorFormat:
    """Read `-o` and `-v` from unparsed arguments, since parsing them may fail."""
    found = Format.TABLE
    formats = {f.value: f for f in Format}
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        following = arguments[position + 1] if position + 1 < len(arguments) else ""
        if argument in {"-o", "--output"}:
            found = formats.get(following, found)
        elif argument.startswith("--output="):
            found = formats.get(argument.removeprefix("--output="), found)
        elif argument.startswith("-o"):
            found = formats.get(argument.removeprefix("-o"), found)
    verbose = any(a in {"-v", "--verbose"} for a in arguments)
    return ErrorFormat(found, verbose)


def report_error(error: MedusaError, requested: ErrorFormat) -> ExitCode:
    """Print an error of Medusa: text on stderr, and data on stdout if `-o` requests it."""
    _print(f"error: {error}")
    _print_data(requested, _as_data(error))
    if requested.verbose:
        _print("".join(traceback.format_exception(error)).rstrip())
    return error.exit_code


def report_usage_error(error: click.ClickException, requested: ErrorFormat) -> ExitCode:
    """Print an error in the arguments, with the usage of the command."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see {context.command_path} --help for more." if context else ""
    if context:
        _print(context.get_usage())
    _print(f"error: {error.format_message()}" + (f"\n  hint: {hint}" if hint else ""))
    _print_data(requested, {"code": "usage", "message": error.format_message(), "hint": hint})
    return ExitCode.USAGE


def report_bug(error: Exception, requested: ErrorFormat) -> ExitCode:
    """Print an unexpected error in one line; its trace goes into a file."""
    trace = "".join(traceback.format_exception(error))
    place = _store(trace)
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    hint = f"the trace is in {place}" if place else "call it again with -v to see the trace"
    _print(f"error: this is a bug in medusa ({what})\n  hint: {hint}; please report it.")
    _print_data(requested, {"code": "bug", "message": what, "hint": hint})
    if requested.verbose:
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


def _store(trace: str) -> Path | None:
    """Write the trace into a new file that only this user can read; None if that fails."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="medusa-crash-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return None
    return Path(name)


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _print_data(requested: ErrorFormat, error: JsonObject) -> None:
    if requested.format is Format.TABLE:
        return
    # YAML is a superset of JSON, so one form serves both.
    document = {"schema_version": SCHEMA_VERSION, "error": error}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
