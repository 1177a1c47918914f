"""The function of the measured Python box, the same for plain PySpark and for Medusa."""

import pyarrow as pa
import pyarrow.compute as pc


def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The computation of the stateless job's expressions."""
    fahrenheit = pc.add(pc.multiply(batch.column("celsius"), 1.8), 32.0)
    made = batch.select(["sensor", "site", "humidity", "at"])
    return made.append_column("fahrenheit", fahrenheit)
