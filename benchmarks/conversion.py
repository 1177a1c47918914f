"""The function of the Python box that is measured: the same for plain PySpark and for ours."""

import pyarrow as pa
import pyarrow.compute as pc


def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What the stateless job computes by expressions."""
    fahrenheit = pc.add(pc.multiply(batch.column("celsius"), 1.8), 32.0)
    made = batch.select(["sensor", "site", "humidity", "at"])
    return made.append_column("fahrenheit", fahrenheit)
