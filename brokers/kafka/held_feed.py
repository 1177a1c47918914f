"""Runs a producer, a program of its own, whose records are kept back while a file exists.

    python -m ….held_feed FILE PARTITION|all producer.py ARGUMENTS

The program goes on meanwhile, in real time, and notices nothing: `produce` of its `Producer`
keeps the records. They are sent in their order when the file is gone, and at the latest by `flush`.
Each record gets the partition of librdkafka's default for records with a key.
"""

import runpy
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka

ALL = "all"
_ANSWERS_WITHIN_S = 15.0
_ROOM_WITHIN_S = 0.1

Send = Callable[[], None]


@dataclass(slots=True)
class Keeping:
    """Which records are sent now.

    Args:
        is_cut: whether records are kept back now.
        partition: of which they are; None: of all.
    """

    is_cut: Callable[[], bool]
    partition: int | None
    _kept: list[Send] = field(default_factory=list)

    def offered(self, send: Send, partition: int) -> tuple[Send, ...]:
        """Offer a record; those to be sent now, in their order."""
        if self.is_cut():
            if self.partition not in {None, partition}:
                return (send,)
            self._kept.append(send)
            return ()
        return (*self.taken(), send)

    def due(self) -> tuple[Send, ...]:
        """The kept ones, if they are to be sent now."""
        return () if not self._kept or self.is_cut() else self.taken()

    def taken(self) -> tuple[Send, ...]:
        """All kept ones."""
        kept, self._kept = tuple(self._kept), []
        return kept


class HeldProducer(confluent_kafka.Producer):
    """A producer that keeps records back."""

    def __init__(self, keeping: Keeping, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._keeping = keeping
        self._partitions: dict[str, int] = {}

    def produce(self, topic: str, *, key: bytes, **others: Any) -> None:  # type: ignore[override]
        """Send a record, or keep it back."""
        if topic not in self._partitions:
            found = self.list_topics(topic, timeout=_ANSWERS_WITHIN_S).topics[topic]
            self._partitions[topic] = len(found.partitions)
        partition = zlib.crc32(key) % self._partitions[topic]
        send = partial(self._send, topic, key=key, partition=partition, **others)
        self._send_all(self._keeping.offered(send, partition))

    def poll(self, timeout: float = -1) -> int:
        """Send what is due, and take delivery reports."""
        self._send_all(self._keeping.due())
        return super().poll(timeout)

    def flush(self, timeout: float = -1) -> int:
        """Send everything, and wait for its delivery reports."""
        self._send_all(self._keeping.taken())
        return super().flush(timeout)

    def _send(self, topic: str, **others: Any) -> None:
        super().produce(topic, **others)

    def _send_all(self, sends: tuple[Send, ...]) -> None:
        if len(sends) == 1:
            sends[0]()  # without room the program itself waits, as without this
            return
        for send in sends:
            while True:
                try:
                    send()
                except BufferError:
                    super().poll(_ROOM_WITHIN_S)
                else:
                    break


def main(file: str, which: str, program: str, *arguments: str) -> None:
    """Run the program as if it had been started itself."""
    keeping = Keeping(Path(file).exists, None if which == ALL else int(which))
    vars(confluent_kafka)["Producer"] = partial(HeldProducer, keeping)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
