"""Messages from a node to the process that sends its heartbeats: orders, then reports.

The orders are pickled, as both sides are one program; the pipe is theirs alone, so that the
passwords of the brokers are on no command line and in no environment.
"""

import json
import os
import pickle
import select
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from brokers.kafka.servers import KafkaServers
from pipeline.clock import Clock, steady_ms
from pipeline.heartbeats.steps import StepAge, decode_steps, encode_steps
from pipeline.ids import Millis, NodeId, ParticipantId

_LENGTH: Final = struct.Struct(">I")
_REPORT: Final = struct.Struct(">QI")
"""Head of a report: the age of the agent's last decision, and the length of the steps."""
_CHUNK: Final = 65_536


@dataclass(frozen=True, slots=True)
class Orders:
    """Whose heartbeats are sent, and where.

    Args:
        servers: the brokers.
        participant: of the node.
        node: its name.
        life: the start of its process, as in its record in the catalog.
    """

    servers: KafkaServers
    participant: ParticipantId
    node: NodeId
    life: Millis


def encode_orders(orders: Orders) -> bytes:
    """The first message."""
    content = pickle.dumps(orders)
    return _LENGTH.pack(len(content)) + content


def encode_report(age_ms: int, steps: Sequence[StepAge]) -> bytes:
    """A report: time since the agent's last decision, and the steps of the lanes."""
    content = encode_steps(steps)
    return _REPORT.pack(age_ms, len(content)) + content


class Reports:
    """Reports to the child; a long one may go into the pipe in parts.

    Args:
        pipe: its write end, which does not block.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._unsent = b""

    def put(self, age_ms: int, steps: Sequence[StepAge]) -> bool:
        """Report, or send the rest of an earlier report.

        Returns:
            Whether there was room: if the child does not read, the report is dropped.
        """
        report = self._unsent or encode_report(age_ms, steps)
        try:
            self._unsent = report[os.write(self._pipe, report) :]
        except (BlockingIOError, BrokenPipeError):
            return False
        return True


class Parent:
    """The node, as its end of the pipe shows it.

    Args:
        pipe: its read end.
        clock: measures the time since a report.
    """

    def __init__(self, pipe: int, clock: Clock) -> None:
        self._pipe = pipe
        self._clock = clock
        self._age_ms = 0
        self._steps = b"{}"
        self._reported_ms = steady_ms(clock)
        self._rest = b""
        self.ended = False
        """Whether the pipe is closed: the node has ended, or ends its heartbeats."""

    def orders(self) -> Orders | None:
        """The first message; None if the node has ended before."""
        head = self._exactly(_LENGTH.size)
        content = self._exactly(_LENGTH.unpack(head)[0]) if head else b""
        if not content:
            return None
        found: Orders = pickle.loads(content)  # noqa: S301 - see the docstring
        return found

    def wait(self, until_s: float) -> None:
        """Read reports until so much steady time, or the end of the node."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while not self.ended:
            left_s = until_s - self._clock.monotonic_s()
            if not poll.poll(max(0.0, left_s) * 1_000):
                return
            self._take(os.read(self._pipe, _CHUNK))

    def agent_ms(self) -> int:
        """Time since the agent's last decision, now."""
        return self._age_ms + steady_ms(self._clock) - self._reported_ms

    def steps(self) -> tuple[StepAge, ...]:
        """The steps of its lanes, as old as they are now."""
        since_ms = steady_ms(self._clock) - self._reported_ms
        found = decode_steps(json.loads(self._steps))
        return tuple(replace(one, age_ms=one.age_ms + since_ms) for one in found)

    def _take(self, content: bytes) -> None:
        """Take in what was read: the last whole report counts."""
        self.ended = not content
        rest = self._rest + content
        while len(rest) >= _REPORT.size:
            age_ms, length = _REPORT.unpack_from(rest)
            end = _REPORT.size + length
            if len(rest) < end:
                break
            self._age_ms, self._steps, rest = age_ms, rest[_REPORT.size : end], rest[end:]
            self._reported_ms = steady_ms(self._clock)
        self._rest = rest

    def _exactly(self, length: int) -> bytes:
        """So many bytes; none if the pipe ends before."""
        content = b""
        while len(content) < length:
            read = os.read(self._pipe, length - len(content))
            if not read:
                self.ended = True
                return b""
            content += read
        return content
