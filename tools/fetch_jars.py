"""Fetches the jars of the embedded stack into the cache, with a line for each step; run by make."""

import os
import sys
from pathlib import Path

from brokers.embedded.class_archive import ensure_archive
from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from brokers.embedded.progress import Step
from pipeline.cli.detached import ARCHIVE_PROGRAM
from pipeline.cli.project import from_environment
from pipeline.errors import MedusaError
from pipeline.settings import combine


def main() -> int:
    """Fetch the missing jars; returns the exit code."""
    settings = combine((("environment", from_environment(os.environ)),))
    cache = Path(settings.cache).expanduser().absolute()
    try:
        java = find_java(os.environ)
        ensure_jars(cache, lambda: java, show)
        ensure_archive(cache, java, ARCHIVE_PROGRAM, show)
    except MedusaError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return 0


def show(step: Step) -> None:
    """One line for a step; on a terminal each replaces the last."""
    count = f" {step.done}/{step.total}" if step.total else ""
    line = f"[setup] {step.what}{count}"
    if not sys.stderr.isatty():
        sys.stderr.write(f"{line}\n")
    else:
        last = step.total and step.done == step.total
        sys.stderr.write(f"\r{line:<70}{chr(10) if last else ''}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
