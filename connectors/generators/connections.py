"""Connection traces of a network: busy servers, large transfers, scans of ports.

The same seed and the same times give the same connections.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

HOSTS, SERVERS = 250, 20
SERVICES = ((443, "tcp", 60), (80, "tcp", 12), (53, "udp", 20), (5432, "tcp", 5), (22, "tcp", 3))
"""Ports with their protocols and how often they are used."""
DURATION_MS, DURATION_SPREAD, DURATION_MAX_MS = 150.0, 1.6, 600_000
"""Median and spread of the logarithm: most connections are short, a few take minutes."""
BYTES, BYTES_SHAPE, BYTES_MAX = 800.0, 1.2, 2_000_000_000
"""Smallest answer, and the exponent of the Pareto distribution of the sizes above it."""
REJECTED_SHARE, TIMED_OUT_SHARE = 0.02, 0.01
DELAY_MAX_MS = 500
"""A connection is reported at most this long after its end."""
SCAN_EVERY_MS, SCAN_PORTS = 30_000, 100
"""Now and then a host tries one port after the other of a server, and is rejected."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that has ended; `ended_at` in ms since 1970 UTC."""

    source: str
    destination: str
    port: int
    protocol: str
    state: str
    sent_bytes: int
    received_bytes: int
    duration_ms: int
    ended_at: int


class Network:
    """Hosts that connect to servers.

    Args:
        seed: of everything that is left to chance.
        start_ms: the time at which the trace begins.
    """

    def __init__(self, seed: int, start_ms: int) -> None:
        self._random = random.Random(seed)
        self._servers = [f"10.0.0.{n + 1}" for n in range(SERVERS)]
        self._weights = [1 / (n + 1) for n in range(SERVERS)]
        self._hosts = [f"10.0.{1 + n // 100}.{n % 100 + 1}" for n in range(HOSTS)]
        self._scan_at_ms = start_ms + SCAN_EVERY_MS // 6
        self._scan: list[tuple[str, str, int]] = []

    def connections(self, at_ms: int, count: int) -> Iterator[Connection]:
        """The next `count` reports at `at_ms`, which must never go back."""
        if at_ms >= self._scan_at_ms:
            self._scan_at_ms = at_ms + SCAN_EVERY_MS
            pair = self._random.choice(self._hosts), self._random.choice(self._servers)
            ports = self._random.sample(range(1, 10_000), SCAN_PORTS)
            self._scan = [(*pair, port) for port in ports]
        for _ in range(count):
            ended_ms = at_ms - self._random.randint(0, DELAY_MAX_MS)
            yield self._scanned(ended_ms) if self._scan else self._usual(ended_ms)

    def _scanned(self, ended_ms: int) -> Connection:
        source, destination, port = self._scan.pop()
        return Connection(source, destination, port, "tcp", "rejected", 60, 40, 1, ended_ms)

    def _usual(self, ended_ms: int) -> Connection:
        chance = self._random
        source = chance.choice(self._hosts)
        destination = chance.choices(self._servers, self._weights)[0]
        port, protocol, _ = chance.choices(SERVICES, [share for *_, share in SERVICES])[0]
        what = chance.random()
        if what < REJECTED_SHARE:
            return Connection(source, destination, port, protocol, "rejected", 60, 40, 1, ended_ms)
        if what < REJECTED_SHARE + TIMED_OUT_SHARE:
            return Connection(
                source, destination, port, protocol, "timed_out", 180, 0, 30_000, ended_ms
            )
        spread = chance.lognormvariate(0, DURATION_SPREAD)
        received = min(BYTES_MAX, int(BYTES * chance.paretovariate(BYTES_SHAPE)))
        return Connection(
            source,
            destination,
            port,
            protocol,
            "closed",
            int(received * chance.uniform(0.02, 0.5)) + 60,
            received,
            min(DURATION_MAX_MS, int(DURATION_MS * spread) + 1),
            ended_ms,
        )
