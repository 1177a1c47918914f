"""Node processes that can be killed, paused and restarted."""

import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.stack import StackSettings
from pipeline.examples.memory import descendants
from tests.faults import clocked

LAST_WORDS = 3_000
STORE = "checkpoint-store"
"""The folder of the checkpoint store, in that of a world."""


def node_settings(stack: StackSettings, folder: Path) -> dict[str, str]:
    """A node's settings of its servers, and of the checkpoint store.

    Args:
        stack: the servers.
        folder: of the world.
    """
    return {
        "store.url": str(folder / STORE),
        "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
        "zookeeper.connect": stack.zookeeper_connect,
        "registry.url": stack.registry_url,
        "cache": str(stack.cache),
    }


class Node:
    """One node: a name, a data folder, and at most one process at a time.

    Args:
        name: of the node in the catalog.
        data: its folder, for logs and scratch files.
        checkpoints: folder of its lanes' checkpoints.
        settings: of its servers.
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
        """Offset of its wall clock from the machine's; a new process keeps it."""

    def start(self) -> None:
        """Start the process, after the end of an earlier one, without waiting until it is ready."""
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
        # Behind a guard, so that no node outlives this process, and in a separate process session.
        self._child = start_child(ChildSpec(self.name, tuple(command), self._out, Path.cwd()))

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._child is not None and self._child.running

    @property
    def ready(self) -> bool:
        """Whether it is ready to claim fragments."""
        return self.running and self._ready.exists()

    @property
    def pid(self) -> int:
        """The id of its process.

        Raises:
            RuntimeError: it has none.
        """
        if self._child is None:
            raise RuntimeError(f"node {self.name} was never started")
        return self._child.pid

    @property
    def jvm(self) -> int | None:
        """The id of its Java process; None before it has one."""
        for pid in descendants(self.pid):
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java":
                    return pid
        return None

    def stop(self) -> None:
        """Send SIGTERM and wait for its end. Does nothing if it was never started."""
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        """End it with kill -9, Java included, and wait for its end. Idempotent."""
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
        """Suspend it and its Java process by SIGSTOP."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it by SIGCONT."""
        os.killpg(self.pid, signal.SIGCONT)

    def move_clock(self, ms: int) -> None:
        """Move its wall clock, back when negative; the monotonic clock is unaffected."""
        self.ahead_ms += ms
        clocked.set_ahead(self._clock, self.ahead_ms)

    def fill_disk(self) -> None:
        """Fail all file writes of it and of its Java process, by a limit of file size."""
        self._limit_files(0)

    def empty_disk(self) -> None:
        """Allow writes again. Processes that have ended meanwhile are ignored."""
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, size: int) -> None:
        for pid in (self.pid, *descendants(self.pid)):
            with suppress(ProcessLookupError):
                _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))

    def last_words(self) -> str:
        """The last lines of its output."""
        text = ""
        for path in (self._out, self.log):
            with suppress(FileNotFoundError):
                text += path.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:]
        return text

    @property
    def log(self) -> Path:
        """The log file of all its processes."""
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
