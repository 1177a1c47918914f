"""Measurement of a command's process tree, and detection of processes that it leaves running."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.tidy.tree import ROOT
from tools.measured import LEFT_BEHIND

WITHIN_S = 60.0
BUSY = "import time\nwhile time.process_time() < 0.5: pass"
ORPHAN = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}])"


def measured(folder: Path, code: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and measurements of a Python program."""
    report, program = folder / "report.json", str(ROOT / "tools" / "measured.py")
    done = subprocess.run(
        [sys.executable, program, *options, str(report), sys.executable, "-c", code],
        timeout=WITHIN_S,
        check=False,
        env=os.environ,
    )
    return done.returncode, json.loads(report.read_text("utf-8"))


def test_an_orphan_counts_although_its_parent_has_ended(tmp_path: Path) -> None:
    """CPU time is that of the whole tree; the exit code is the command's own."""
    code, found = measured(tmp_path, f"{ORPHAN.format(code=BUSY)}\nsys.exit(3)")
    assert code == 3
    assert found["cpu_s"] >= 0.5
    assert found["left_behind"] == []


def test_a_process_that_survives_is_killed_and_named(tmp_path: Path) -> None:
    """A stage must leave nothing running."""
    sleeper = "import time; time.sleep(600)"
    code, found = measured(tmp_path, ORPHAN.format(code=sleeper), "--ends-within=0.2")
    assert code == LEFT_BEHIND
    (left,) = found["left_behind"]
    assert sleeper in left
    pid = int(left.split()[1].rstrip(":"))
    assert not Path(f"/proc/{pid}").exists()
