"""Readings as the benchmarks send them, and the schemas of what the plain script makes of them."""

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
SWING_JSON = json.dumps(
    {
        "type": "record",
        "name": "Swing",
        "fields": [
            {"name": "sensor", "type": "string"},
            {"name": "celsius", "type": "double"},
            {"name": "other", "type": ["null", "double"]},
            {"name": "at", "type": _INSTANT},
        ],
    }
)
SITES = tuple(f"site-{n:02d}" for n in range(8))


class Readings:
    """Makes encoded readings.

    Args:
        schema_id: the id under which the registry has the schema.
        seed: of the values.
    """

    def __init__(self, schema_id: int, seed: int) -> None:
        self._prefix = b"\x00" + schema_id.to_bytes(4, "big")
        self._schema = fastavro.parse_schema(json.loads(READING_JSON))
        self._random = random.Random(seed)

    def make(self, at_ms: int) -> tuple[bytes, bytes]:
        """Key and value of one reading."""
        sensor = f"sensor-{self._random.randrange(10_000):06d}"
        reading = {
            "sensor": sensor,
            "site": self._random.choice(SITES),
            "note": "calibrated in spring, roof, south side, third mast, checked",
            "celsius": self._random.uniform(-20, 40),
            "humidity": self._random.random(),
            "count": self._random.randrange(1_000),
            "at": at_ms,
        }
        body = io.BytesIO(self._prefix)
        body.seek(len(self._prefix))
        fastavro.schemaless_writer(body, self._schema, reading)
        return sensor.encode(), body.getvalue()
