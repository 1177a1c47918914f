"""Main program of the process that sends a node's heartbeats.

    python -P -m pipeline.node.heartbeats.child

Neither the lock of the node's interpreter, nor its garbage collection, nor a lane that hangs delays
a heartbeat. Standard input is a pipe whose only write end the node has. First come the
orders, then reports. However the node ends, the kernel closes the pipe, and one last heartbeat says
so. Standard output goes to the node: a line for each change, the error that prevents heartbeats, or
an empty one when they are sent again.
"""

import contextlib
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Final

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from pipeline.clock import Clock, steady_ms
from pipeline.errors import MedusaError
from pipeline.heartbeats.heartbeat import DELIVERY_MS, INTERVAL_MS, STEPS_EVERY, Heartbeat
from pipeline.heartbeats.topic import HeartbeatWriter
from pipeline.node.heartbeats.messages import Orders, Parent
from pipeline.system_clock import SystemClock

INTERVAL_S: Final = INTERVAL_MS / 1_000
ADMIN_S: Final = 2.0
LAST_S: Final = 3.0
"""How long the last heartbeat may take."""
ENDED_S: Final = 10
"""The kernel ends this process so long after the node's end, whatever it does."""


def send_all(
    orders: Orders,
    parent: Parent,
    writer: HeartbeatWriter,
    clock: Clock,
    report: Callable[[str], None],
) -> None:
    """Send heartbeats until the end of the node, and the last one.

    Args:
        orders: whose.
        parent: the node's process.
        writer: of the topic.
        clock: sets the pace.
        report: receives the error that prevents heartbeats, once; then an empty text when they
            are sent again.
    """
    number, failed = 0, False
    next_s = clock.monotonic_s()
    while not parent.ended:
        parent.wait(next_s)
        number += 1
        heartbeat = Heartbeat(
            orders.node,
            orders.life,
            number,
            steady_ms(clock),
            parent.agent_ms(),
            parent.ended,
            parent.steps() if number % STEPS_EVERY == 1 else None,
            clock.now_ms(),
        )
        try:
            writer.send(heartbeat)
        except MedusaError as error:
            if not failed:
                report(" ".join(str(error).split()))
            failed = True
        else:
            if failed:
                report("")
            failed = False
        next_s, now_s = next_s + INTERVAL_S, clock.monotonic_s()
        if next_s <= now_s:  # after a delay none is sent for the time that has passed
            next_s = now_s + INTERVAL_S


def main() -> None:
    """Send the heartbeats of the parent process."""
    # The node ends in its own time, also when a signal goes to its whole group or control group.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.set_blocking(1, False)
    clock = SystemClock()
    parent = Parent(0, clock)
    orders = parent.orders()
    if orders is None:
        return
    admin = KafkaAdmin(orders.servers, ADMIN_S, clock)
    kafka = RemoteKafka(orders.servers, clock)
    writer = HeartbeatWriter(
        orders.participant, admin, partial(kafka.producer, DELIVERY_MS / 1_000)
    )
    send_all(orders, parent, writer, clock, _report)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ENDED_S)
    with contextlib.suppress(MedusaError):  # Kafka is away: others see the silence
        writer.end(LAST_S)


def _report(line: str) -> None:
    with contextlib.suppress(OSError):  # the node has ended, or does not read
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
