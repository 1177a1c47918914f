"""One of two brokers cannot be reached: a lane reads the partitions of the other one."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from tests.system.outages.brokers import SecondBroker
from tests.system.outages.cases import FRAGMENTS, IDLE_MS, WINDOW_MS, WITHIN_S, Network, network
from tests.system.support import Installation, network_id

AWAY_S = int(os.environ.get("OUTAGE_SECONDS", "20"))
"""Longer than a partition that answers may be without records before it is idle."""
assert 1_000 * AWAY_S >= 2 * IDLE_MS

pytestmark = [
    pytest.mark.system,
    pytest.mark.second_tier("the unit tests of ends and of batches leave partitions unanswered"),
    pytest.mark.usefixtures("node"),
    pytest.mark.timeout(900 + 3 * AWAY_S),
]

GOES_ON_WITHIN_S = 40.0
"""Ten seconds are usual: so long Spark waits for records of a batch that was planned with them."""
BURST = 10_000
CALM_MS = 5_000

_LOG = logging.getLogger(__name__)

Outage = Callable[[SecondBroker], AbstractContextManager[int]]


@contextmanager
def suspended(second: SecondBroker) -> Iterator[int]:
    """A block in which the second broker does not answer; returns when it began (ms)."""
    second.suspend()
    try:
        yield now_ms()
    finally:
        second.go_on()


@contextmanager
def killed(second: SecondBroker) -> Iterator[int]:
    """The same for a broker that has ended, and is started again from its folder."""
    second.kill()
    try:
        yield now_ms()
    finally:
        second.start()


def now_ms() -> int:
    """Wall time."""
    return int(time.time() * 1000)


def check_away(net: Network, since_ms: int) -> None:
    """Without partition 1, partition 0 is read on, and no window beyond partition 1 is published.

    `since_ms`: since when the second broker is away.
    """
    began_s = time.monotonic()
    net.await_kept(0, since_ms, GOES_ON_WITHIN_S)
    _LOG.info("%s: partition 0 goes on after %.1f s", net.name, time.monotonic() - began_s)
    on_s = time.monotonic()
    for fragment in FRAGMENTS:
        net.await_unreachable(fragment, 1)
    net.await_kept(0, since_ms + 1_000 * AWAY_S, AWAY_S + WITHIN_S)
    net.log_pace("from there on", on_s)
    net.log_pace("since it is away", began_s)
    last = net.last_kept("p1")
    assert last is not None
    assert max(end for _, end, _ in net.windows()) <= max(since_ms, last.at_ms) + WINDOW_MS


def check_level(net: Network, since_ms: int) -> None:
    """Partition 1 is read again, and in the end each result is there exactly once."""
    began_s = time.monotonic()
    net.await_kept(1, since_ms)
    _LOG.info("%s: level after %.1f s", net.name, time.monotonic() - began_s)
    net.await_kept(0, now_ms() + CALM_MS)
    net.log_pace("since it is back", began_s)
    for fragment in FRAGMENTS:
        net.medusa.await_state(net.name, fragment, LaneState.RUNNING)
    net.await_exact()


@pytest.mark.parametrize("outage", [suspended, killed])
def test_a_broker_that_is_away_holds_up_its_own_partitions_only(
    medusa: Installation, second: SecondBroker, outage: Outage
) -> None:
    """Event time waits for them, so that no record is late when they are back."""
    with network(medusa, second, f"away_{outage.__name__}") as net:
        began_s = time.monotonic()
        net.await_kept(0, now_ms() + CALM_MS)
        net.log_pace("before", began_s)
        with outage(second) as since_ms:
            check_away(net, since_ms)
        check_level(net, now_ms())


def test_a_planned_batch_that_cannot_be_read_is_withdrawn_and_planned_without_them(
    medusa: Installation, second: SecondBroker
) -> None:
    """The broker is suspended while it takes in records, and the lanes read them."""
    with network(medusa, second, "away_unread") as net:
        net.feed.burst(1, BURST)
        with suspended(second) as since_ms:
            began_s = time.monotonic()
            net.await_withdrawn()
            _LOG.info("withdrawn after %.1f s", time.monotonic() - began_s)
            net.await_kept(0, since_ms, GOES_ON_WITHIN_S)
        check_level(net, now_ms())


def test_a_lane_starts_without_the_partitions_that_cannot_be_reached(
    medusa: Installation, second: SecondBroker
) -> None:
    """They are checked, and read, when they are back."""
    with network(medusa, second, "away_started") as net:
        this = network_id(net.name)
        pause(this, None, medusa.catalog)
        for fragment in FRAGMENTS:
            medusa.await_state(net.name, fragment, LaneState.STOPPED)
        with suspended(second):
            resume(this, None, medusa.catalog)
            resumed_ms = now_ms()
            net.await_kept(0, resumed_ms)
            _LOG.info("reads after %.1f s", (now_ms() - resumed_ms) / 1000)
            for fragment in FRAGMENTS:
                net.await_unreachable(fragment, 1)
        check_level(net, now_ms())
