"""Node processes that can be killed, paused, and started again, as an operator would."""

import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from brokers.embedded.processes import Child, ChildSpec, start_child
from pipeline.examples.memory import descendants
from tests.faults import clocked

LAST_WORDS = 3_000


class Node:
    """One node: a name, a data folder, and at most one process at a time.

    Args:
        name: of the node in the catalog.
        data: its folder, for logs and scratch files.
        checkpoints: where its lanes keep theirs.
        settings: where its servers are.
    """

    def __init__(
        self, name: str, data: Path, checkpoints: Path, settings: Mapping[str, str]
    ) -> None:
        self.name = name
        self.data = data
        self.checkpoints = checkpoints
        self._settings = settings
        self._child: Child | None = None
        self.ahead_ms = 0
        """By how much its wall clock is ahead of ours; a new process keeps it."""

    def start(self) -> None:
        """Start the process, after the end of an earlier one; it is not ready yet."""
        self.kill()
        self.data.mkdir(parents=True, exist_ok=True)
        clocked.set_ahead(self._clock, self.ahead_ms)
        self._ready.unlink(missing_ok=True)
        settings = {
            **self._settings,
            "node": self.name,
            "data": str(self.data),
            "checkpoints": str(self.checkpoints),
        }
        command = [sys.executable, "-P", clocked.__file__, str(self._clock), "node", "start"]
        command += [f"--ready-file={self._ready}", "--servers-within=60"]
        command += [f"--set={key}={value}" for key, value in settings.items()]
        # Behind a guard, so that no node outlives us, and in a session of its own.
        self._child = start_child(ChildSpec(self.name, tuple(command), self._out, Path.cwd()))

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._child is not None and self._child.running

    @property
    def ready(self) -> bool:
        """Whether it takes up fragments."""
        return self.running and self._ready.exists()

    @property
    def pid(self) -> int:
        """Of its process.

        Raises:
            RuntimeError: it has none.
        """
        if self._child is None:
            raise RuntimeError(f"node {self.name} was never started")
        return self._child.pid

    @property
    def jvm(self) -> int | None:
        """Its Java process; None before it has one."""
        for pid in descendants(self.pid):
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java":
                    return pid
        return None

    def stop(self) -> None:
        """Ask it to end, by SIGTERM, and wait until it has; one that was never started has."""
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        """End it with kill -9, Java included, and wait until it is gone. Twice does nothing."""
        if self._child is None:
            return
        if self._child.running:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.stop()

    def kill_jvm(self) -> None:
        """End only its Java process with kill -9."""
        jvm = self.jvm
        if jvm is not None:
            with suppress(ProcessLookupError):
                os.kill(jvm, signal.SIGKILL)

    def pause(self) -> None:
        """Stop it and its Java process where they stand."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on as if no time had passed."""
        os.killpg(self.pid, signal.SIGCONT)

    def move_clock(self, ms: int) -> None:
        """Let its wall clock jump, back when negative; the monotonic one goes on as it went."""
        self.ahead_ms += ms
        clocked.set_ahead(self._clock, self.ahead_ms)

    def fill_disk(self) -> None:
        """Let no file of it or of its Java process grow any more."""
        self._limit_files(0)

    def empty_disk(self) -> None:
        """Let files grow again. Processes that have ended meanwhile are no trouble."""
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, size: int) -> None:
        for pid in (self.pid, *descendants(self.pid)):
            with suppress(ProcessLookupError):
                _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))

    def last_words(self) -> str:
        """The end of what it wrote."""
        text = ""
        for path in (self._out, self.log):
            with suppress(FileNotFoundError):
                text += path.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:]
        return text

    @property
    def log(self) -> Path:
        """What it logs, in all of its lives."""
        return self.data / "logs" / f"node-{self.name}.log"

    @property
    def _ready(self) -> Path:
        return self.data / "ready"

    @property
    def _clock(self) -> Path:
        return self.data / "clock"

    @property
    def _out(self) -> Path:
        return self.data / "node.out"
