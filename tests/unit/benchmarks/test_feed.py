"""The feed of readings."""

import argparse
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import feed


class Sent:
    """A producer that keeps what it was given, and does something after so many readings."""

    def __init__(self) -> None:
        self.partitions: list[int] = []
        self.times_ms: list[int] = []

    def produce(
        self, _topic: str, _value: bytes, _key: bytes, partition: int, **others: object
    ) -> None:
        """A reading."""
        self.partitions.append(partition)
        self.times_ms.append(int(str(others["timestamp"])))

    def poll(self, _timeout: float) -> int:
        """Nothing is reported."""
        return 0

    def flush(self, _timeout: float) -> int:
        """Everything was sent."""
        return 0


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def values(seconds: float, held: Path) -> argparse.Namespace:
    """The arguments of a feed."""
    return argparse.Namespace(
        bootstrap_servers="nowhere:1",
        topics=["readings"],
        schema_id=1,
        partitions=3,
        seed=1,
        rate=300.0,
        warm_up=0.0,
        seconds=seconds,
        held=held,
    )


def test_one_partition_is_kept_back_while_a_file_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its readings come afterwards, with their times, in order."""
    sent, held = Sent(), tmp_path / "held"
    monkeypatch.setattr(feed, "producer", lambda *_: sent)
    held.touch()
    healing = threading.Timer(0.15, held.unlink)
    healing.start()
    report = feed.steady(values(0.3, held))
    healing.join()
    assert report["sent"] == len(sent.partitions)
    first = sent.partitions.index(0)
    assert len(sent.partitions[:first]) >= 10
    of_it = [at for at, one in zip(sent.times_ms, sent.partitions, strict=True) if one == 0]
    assert of_it == sorted(of_it)
    assert of_it[0] < sent.times_ms[first - 1]
    assert abs(3 * len(of_it) - report["sent"]) <= 3


def test_what_is_kept_back_at_the_end_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition has the same number of readings."""
    sent, held = Sent(), tmp_path / "held"
    monkeypatch.setattr(feed, "producer", lambda *_: sent)
    held.touch()
    report = feed.steady(values(0.1, held))
    assert report["sent"] == len(sent.partitions) > 10
    assert abs(3 * sent.partitions.count(0) - report["sent"]) <= 3
    assert sent.partitions[-1] == 0


def test_a_signal_ends_it_with_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its time."""
    sent = Sent()
    monkeypatch.setattr(feed, "producer", lambda *_: sent)
    ending = threading.Timer(0.05, signal.raise_signal, [signal.SIGTERM])
    ending.start()
    began_s = time.monotonic()
    report = feed.steady(values(60.0, tmp_path / "held"))
    ending.join()
    assert time.monotonic() - began_s < 10
    assert report["sent"] == len(sent.partitions)
