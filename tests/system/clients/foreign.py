"""A client in another language: a process that answers JSON lines, each within a timeout."""

import json
import os
import queue
import subprocess
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.certificates import LOOPBACK
from tests.system.clients.installing import Program

ANSWERS_WITHIN_S = 60.0
ENDS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    """A registry: its address and a client's credentials."""

    url: str
    user: str = ""
    password: str = ""
    ca: str = ""


@dataclass(frozen=True)
class RefusedError(Exception):
    """The client's error; `code` is the registry's."""

    code: int | None
    message: str


class Foreign:
    """A running client, without a cache of the registry's responses."""

    def __init__(self, program: Program, served: Served, log: Path) -> None:
        self.language = program.language
        self._log = log
        near = {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                program.command,
                env=os.environ | dict(program.environment) | near,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._send(asdict(served))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(ENDS_WITHIN_S)
        assert self._process.stdin is not None
        self._process.stdin.close()

    def request(self, call: str, **arguments: Any) -> Any:
        """Call the client; returns its result.

        Raises:
            RefusedError: it throws.
        """
        self._send({"call": call, **arguments})
        line = self._answers.get(timeout=ANSWERS_WITHIN_S)
        assert line, f"the client for {self.language} ended: {self._log.read_text()}"
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"]["code"], answer["error"]["message"])
        return answer["value"]

    def refusal(self, call: str, **arguments: Any) -> int | None:
        """The registry's code for a call that fails."""
        return self.refused(call, **arguments).code

    def refused(self, call: str, **arguments: Any) -> RefusedError:
        """The error of a call that fails."""
        try:
            value = self.request(call, **arguments)
        except RefusedError as error:
            return error
        raise AssertionError(f"{self.language}: {call} was not refused, but answered {value}")

    def _send(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(line)}\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")
