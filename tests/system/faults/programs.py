"""Programs of the tests that run Spark in a Java process of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def lines_of(module: str, *arguments: str, within_s: float) -> list[str]:
    """What a module prints as a program; fails the test if it does not end well."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
