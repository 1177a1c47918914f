"""Sends readings and calibrations of made-up sensors to Kafka, as Avro, for a schema registry.

A program of its own, as any existing producer would be: confluent-kafka with the serializer of a
schema registry. Nothing in it knows who reads the topics; what it sends is made up by a generator.
"""

import argparse
import os
import signal
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.serialization import MessageField, SerializationContext

from medusa_streams.generators import sensors

with warnings.catch_warnings(record=True) as told:
    from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from httpx import HTTPError
for one in told:
    # Authlib, which the registry client uses, warns of its own future; nothing to do about it here.
    if one.category.__name__ != "AuthlibDeprecationWarning":
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

BEHIND_MAX_MS = 2_000
"""A feed that falls this far behind skips ahead: it reports what is, not what was."""
DELIVERY_SECONDS = 30
HINT = (
    "  Are they running? Other addresses: KAFKA_BOOTSTRAP_SERVERS and SCHEMA_REGISTRY_URL, or "
    "--bootstrap-servers and --registry."
)
DEVICES_MAX, SECONDS_MAX = 1_000, 86_400


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    bootstrap_servers: str
    registry: str
    seconds: float
    devices: int
    seed: int


def parse(arguments: list[str]) -> Options:
    """Read the command line; argparse ends the program when it is wrong."""
    parser = argparse.ArgumentParser(
        description="Send readings and calibrations as Avro to the Kafka topics `readings` and "
        "`calibrations`."
    )
    add = parser.add_argument
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    registry = os.environ.get("SCHEMA_REGISTRY_URL", "http://127.0.0.1:8081")
    add("--bootstrap-servers", default=servers, help="Kafka brokers (%(default)s)")
    add("--registry", default=registry, help="schema registry (%(default)s)")
    add("--seconds", type=float, default=60.0, help="how long to send (%(default)s)")
    add("--devices", type=int, default=sensors.DEVICES, help="how many there are (%(default)s)")
    add("--seed", type=int, default=1, help="the same seed gives the same devices (%(default)s)")
    values = parser.parse_args(arguments)
    few, many = sensors.ROOM_SIZE, DEVICES_MAX
    if not few <= values.devices <= many or not 0 < values.seconds <= SECONDS_MAX:
        parser.error(f"--devices is {few} to {many}, --seconds above 0 and up to {SECONDS_MAX}")
    if not values.registry.startswith(("http://", "https://")):
        parser.error("--registry (SCHEMA_REGISTRY_URL) begins with http:// or https://")
    return Options(
        values.bootstrap_servers, values.registry, values.seconds, values.devices, values.seed
    )


class Feed:
    """Sends readings and calibrations, each to its topic, and counts what was delivered."""

    def __init__(self, options: Options) -> None:
        self._readings = SerializationContext("readings", MessageField.VALUE)
        self._calibrations = SerializationContext("calibrations", MessageField.VALUE)
        registry = SchemaRegistryClient({"url": options.registry})
        schemas = Path(__file__).parent / "schemas"
        self._first, self._second, self._calibration = (
            AvroSerializer(registry, (schemas / file).read_text(encoding="utf-8"))
            for file in ("reading-1.avsc", "reading.avsc", "calibration.avsc")
        )
        self._producer = Producer(
            {
                "bootstrap.servers": options.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": DELIVERY_SECONDS * 1_000,
                "log_level": 2,  # a broker that is down is told once, at the end
            }
        )
        self.delivered = 0
        self.failure: str | None = None

    def send(self, report: sensors.Reading | sensors.Calibration) -> None:
        """Hand one report to the client; wait for room when too many are on their way."""
        topic, body = self._encoded(report)
        give_up_at = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                self._producer.produce(
                    topic, value=body, key=report.device.encode(), on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
                if time.monotonic() > give_up_at:
                    raise
            else:
                return

    def _encoded(self, report: sensors.Reading | sensors.Calibration) -> tuple[str, bytes | None]:
        fields = asdict(report)
        if isinstance(report, sensors.Calibration):
            return "calibrations", self._calibration(fields, self._calibrations)
        if report.battery is not None:
            return "readings", self._second(fields, self._readings)
        del fields["battery"]
        return "readings", self._first(fields, self._readings)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failure = self.failure or str(error)

    def poll(self) -> None:
        """Take delivery reports without waiting."""
        self._producer.poll(0)

    def finish(self) -> int:
        """Wait for the last delivery reports; how many are left undelivered."""
        return int(self._producer.flush(DELIVERY_SECONDS))


class Stop:
    """Becomes true when the program is asked to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True


def run(options: Options, feed: Feed, stop: Stop) -> None:
    """Send until the time is over, a delivery fails or somebody stops it.

    Time of the fleet begins with the clock and goes on steadily; after a pause of this program it
    skips ahead. A clock that is set meanwhile changes nothing.
    """
    start_ms = time.time_ns() // 1_000_000
    began_s = time.monotonic()
    fleet = sensors.Fleet(options.seed, start_ms, options.devices)
    passed_ms = 0
    while passed_ms < options.seconds * 1_000 and not stop.asked and feed.failure is None:
        passed_ms += sensors.TICK_MS
        for report in fleet.reports(start_ms + passed_ms):
            feed.send(report)
        feed.poll()
        ahead_ms = passed_ms - (time.monotonic() - began_s) * 1_000
        if ahead_ms > 0:
            time.sleep(ahead_ms / 1_000)
        elif -ahead_ms > BEHIND_MAX_MS:
            passed_ms += round(-ahead_ms)


def main(arguments: list[str]) -> int:
    """Run the feed; 0 when everything was delivered."""
    options = parse(arguments)
    stop = Stop()
    try:
        feed = Feed(options)
        run(options, feed, stop)
        left = feed.finish()
    except (HTTPError, SchemaRegistryError) as error:
        sys.stderr.write(f"producer: schema registry {options.registry}: {error}\n{HINT}\n")
        return 1
    except (KafkaException, BufferError, OSError) as error:
        sys.stderr.write(f"producer: {error}\n")
        return 1
    if feed.failure is not None or left:
        reason = feed.failure or f"{left} reports got no answer in {DELIVERY_SECONDS} s"
        sys.stderr.write(f"producer: not delivered: {reason}\n{HINT}\n")
        return 1
    sys.stderr.write(f"producer: {feed.delivered} readings and calibrations delivered\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
