from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connectors.generators.sensors import TICK_MS, Calibration, Fleet, Reading
from pipeline.projects.sensors import producer
from pipeline.projects.sensors.producer import parse
from schemas import avro, codec

START_MS = 1_700_000_000_000


def reports() -> Iterator[Reading | Calibration]:
    """Reports of a fleet."""
    fleet = Fleet(1, START_MS)
    for at_ms in count(START_MS, TICK_MS):
        yield from fleet.reports(at_ms)


def schema(file: str) -> avro.AvroSchema:
    """A schema that comes with the project."""
    path = Path(producer.__file__).parent / "schemas" / file
    return avro.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "file"), [(Reading, "reading"), (Calibration, "calibration")])
def test_reports_have_the_fields_of_their_schemas(kind: type, file: str) -> None:
    """The schemas have exactly the fields that are sent."""
    report = asdict(next(one for one in reports() if isinstance(one, kind)))
    decoded = decode(schema(f"{file}.avsc"), schema(f"{file}.avsc"), report)
    assert decoded.keys() == report.keys()


def decode(writer: avro.AvroSchema, reader: avro.AvroSchema, fields: dict[str, object]) -> Any:
    """Decode fields with the schemas of the writer and of the reader."""
    return codec.decode(writer, reader, codec.encode(writer, fields))


def test_both_versions_of_a_reading_can_be_read_as_the_other_one() -> None:
    """The first has no battery, which the second reads as unknown."""
    fields = asdict(next(one for one in reports() if isinstance(one, Reading)))
    assert fields.pop("battery") is None
    first, second = schema("reading-1.avsc"), schema("reading.avsc")
    assert decode(first, second, fields)["battery"] is None
    assert "battery" not in decode(second, first, {**fields, "battery": 3.5})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--devices", "9"], "--devices is 10 to 1000"),
        (["--seconds", "0"], "above 0"),
        (["--registry", "localhost:8081"], "begins with http://"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value out of range ends the program with a message about it."""
    with pytest.raises(SystemExit):
        parse(arguments)
    assert says in capsys.readouterr().err


class Clock:
    """Time passes only in sleep, and once during a long operation."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic(self) -> float:
        """Seconds that have passed."""
        return self.passed_s

    def time_ns(self) -> int:
        """Now."""
        return START_MS * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.passed_s += seconds


class Taken:
    """Takes the sent records; one poll after two seconds takes five more."""

    failure = None

    def __init__(self, clock: Clock) -> None:
        self.times: list[int] = []
        self._clock = clock
        self._held = False

    def send(self, report: Reading | Calibration) -> None:
        """Keep the times of readings."""
        if isinstance(report, Reading):
            self.times.append(report.measured_at)

    def poll(self) -> None:
        """One poll takes long."""
        if self._clock.passed_s >= 2 and not self._held:
            self._held = True
            self._clock.passed_s += 5


def test_a_delayed_feed_skips_the_missed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when its time is over, and sends nothing of the time that it missed."""
    clock = Clock()
    taken = Taken(clock)
    monkeypatch.setattr(producer, "time", clock)
    options = parse(["--seconds", "10"])
    stop = cast("producer.Stop", SimpleNamespace(asked=False))
    producer.run(options, cast("producer.Feed", taken), stop)
    assert clock.passed_s == pytest.approx(10, abs=0.1)
    missed = [at for at in taken.times if START_MS + 3_000 < at < START_MS + 6_000]
    assert not missed
    assert max(taken.times) > START_MS + 9_500
