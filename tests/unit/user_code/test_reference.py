"""The example of the reference does what it says."""

import re
from pathlib import Path

import pyarrow as pa

from pipeline.network import type_text
from pipeline.user_code.caller import Caller
from pipeline.user_code.function import Function

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "network.md"


def test_the_example_of_a_function_works() -> None:
    """With the columns that the document beside it declares, and for no rows, too."""
    section = PAGE.read_text().split("### `python`")[1].split("\n### ")[0]
    (source,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (declared,) = re.findall(r"columns: \{(.*)\}", section)
    columns = tuple(type_text.read_column(*entry.split(": ")) for entry in declared.split(", "))
    with Caller(Function("alerts.py:rate", source, columns, 10_000)) as calls:
        for sensors, values in (([], []), (["a", "b"], [90.0, 91.0])):
            given = {
                "sensor": pa.array(sensors, pa.string()),
                "value": pa.array(values, pa.float64()),
            }
            assert calls.call(pa.record_batch(given)).to_pylist() == [
                {"sensor": sensor, "level": int(value > 90), "notes": None}
                for sensor, value in zip(sensors, values, strict=True)
            ]
