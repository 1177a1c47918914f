"""`medusa test` in a folder, as a user calls it, with this source tree."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WITHIN_S = 280.0


def run(
    folder: Path, *command: str, within_s: float = WITHIN_S
) -> "subprocess.CompletedProcess[str]":
    """Run a module as a program in a folder."""
    return subprocess.run(
        [sys.executable, "-P", "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )


def medusa_test(folder: Path, *arguments: str) -> tuple[int, Any]:
    """Run `medusa test`; the exit code, and what it says as data."""
    called = run(folder, "pipeline.cli.main", "test", *arguments, "-o", "json")
    assert called.stdout, called.stderr
    return called.returncode, json.loads(called.stdout)
