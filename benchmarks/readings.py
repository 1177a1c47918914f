"""Readings of the benchmarks, and the schemas of the plain script's results."""

import io
import json
import random
from pathlib import Path

import fastavro

HERE = Path(__file__).parent
READING_JSON = (HERE / "schemas" / "reading.avsc").read_text(encoding="utf-8")
_INSTANT = {"type": "long", "logicalType": "timestamp-millis"}
CONVERTED_JSON = json.dumps(
    {
        "type": "record",
        "name": "Converted",
        "fields": [
            {"name": "sensor", "type": "string"},
            {"name": "site", "type": "string"},
            {"name": "fahrenheit", "type": "double"},
            {"name": "humidity", "type": "double"},
            {"name": "at", "type": _INSTANT},
        ],
    }
)
AVERAGE_JSON = json.dumps(
    {
        "type": "record",
        "name": "Average",
        "fields": [
            {"name": "site", "type": ["null", "string"]},
            {"name": "window_start", "type": _INSTANT},
            {"name": "window_end", "type": _INSTANT},
            {"name": "celsius", "type": ["null", "double"]},
            {"name": "readings", "type": "long"},
        ],
    }
)
MAXIMUM_JSON = json.dumps(
    {
        "type": "record",
        "name": "Maximum",
        "fields": [
            {"name": "site", "type": ["null", "string"]},
            {"name": "sensor", "type": ["null", "string"]},
            {"name": "window_start", "type": _INSTANT},
            {"name": "window_end", "type": _INSTANT},
            {"name": "celsius", "type": ["null", "double"]},
            {"name": "readings", "type": ["null", "long"]},
        ],
    }
)
SITES = tuple(f"site-{n:02d}" for n in range(8))


class Readings:
    """Generator of encoded readings.

    Args:
        schema_id: the schema's id in the registry.
        seed: of the values.
    """

    def __init__(self, schema_id: int, seed: int) -> None:
        self._prefix = b"\x00" + schema_id.to_bytes(4, "big")
        self._schema = fastavro.parse_schema(json.loads(READING_JSON))
        self._random = random.Random(seed)

    def make(self, at_ms: int) -> tuple[bytes, bytes]:
        """Key and value of one reading."""
        sensor, rest = self.parts()
        return sensor, self.body(sensor, rest, at_ms)

    def parts(self) -> tuple[bytes, bytes]:
        """A sensor, and the encoded fields between sensor and time."""
        sensor = f"sensor-{self._random.randrange(10_000):06d}"
        reading = {
            "sensor": "",
            "site": self._random.choice(SITES),
            "note": "calibrated in spring, roof, south side, third mast, checked",
            "celsius": self._random.uniform(-20, 40),
            "humidity": self._random.random(),
            "count": self._random.randrange(1_000),
            "at": 0,
        }
        body = io.BytesIO()
        fastavro.schemaless_writer(body, self._schema, reading)
        return sensor.encode(), body.getvalue()[1:-1]

    def body(self, sensor: bytes, rest: bytes, at_ms: int) -> bytes:
        """The value of a reading of these parts: sensor is its first field, time its last."""
        return b"".join((self._prefix, _long(len(sensor)), sensor, rest, _long(at_ms)))


_MORE = 0x80
"""The continuation bit of a byte."""


def _long(value: int) -> bytes:
    """Encode a non-negative Avro long."""
    left, made = value << 1, bytearray()
    while left >= _MORE:
        made.append(left % _MORE + _MORE)
        left //= _MORE
    made.append(left)
    return bytes(made)
