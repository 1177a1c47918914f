"""A client in another language: a process that answers lines of JSON, each within a deadline."""

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
    """A registry: its address, and what a client needs to be let in."""

    url: str
    user: str = ""
    password: str = ""
    ca: str = ""


@dataclass(frozen=True)
class RefusedError(Exception):
    """What the user of the client is told when something fails; `code` is the registry's."""

    code: int | None
    message: str


class Foreign:
    """A running client. It asks the registry anew for everything."""

    def __init__(self, program: Program, served: Served, log: Path) -> None:
        self.language = program.language
        self._log = log
        near = {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
        with log.open("w") as told:
            self._process = subprocess.Popen(
                program.command,
                env=os.environ | dict(program.environment) | near,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                text=True,
                encoding="utf-8",
            )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._tell(asdict(served))

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

    def ask(self, call: str, **told: Any) -> Any:
        """What the client returns for a call.

        Raises:
            RefusedError: it throws.
        """
        self._tell({"call": call, **told})
        line = self._answers.get(timeout=ANSWERS_WITHIN_S)
        assert line, f"the client for {self.language} ended: {self._log.read_text()}"
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"]["code"], answer["error"]["message"])
        return answer["value"]

    def refusal(self, call: str, **told: Any) -> int | None:
        """The registry's code for a call that fails."""
        return self.refused(call, **told).code

    def refused(self, call: str, **told: Any) -> RefusedError:
        """How a call fails."""
        try:
            value = self.ask(call, **told)
        except RefusedError as error:
            return error
        raise AssertionError(f"{self.language}: {call} was not refused, but answered {value}")

    def _tell(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(line)}\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")
