"""Messages from a node to the process that sends its heartbeats: orders, then reports.

The orders are pickled, as both sides are one program; the pipe is theirs alone, so that the
passwords of the brokers are on no command line and in no environment.
"""

import os
import pickle
import select
import struct
from dataclasses import dataclass
from typing import Final

from brokers.kafka.servers import KafkaServers
from pipeline.clock import Clock, steady_ms
from pipeline.ids import Millis, NodeId, ParticipantId

_LENGTH: Final = struct.Struct(">I")
_AGE: Final = struct.Struct(">Q")
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


def encode_age(age_ms: int) -> bytes:
    """A report: time since the agent's last decision."""
    return _AGE.pack(age_ms)


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

    def _take(self, content: bytes) -> None:
        self.ended = not content
        content = self._rest + content
        whole = len(content) // _AGE.size * _AGE.size
        self._rest = content[whole:]
        if whole:
            (self._age_ms,) = _AGE.unpack_from(content, whole - _AGE.size)
            self._reported_ms = steady_ms(self._clock)

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
