"""The thresholds of the alarm. Medusa runs this file in a process of its own; see network.yaml."""

import pyarrow as pa
import pyarrow.compute as pc

HOT, COOL = 26.0, 24.0
"""In degrees. From above the one on it is too hot, and no more only from below the other one on."""


def decide(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The readings that decide, each with what it decides; those in between say nothing."""
    hot = pc.greater(batch.column("value"), HOT)
    decides = pc.or_(hot, pc.less(batch.column("value"), COOL))
    made = batch.select(["device", "number", "value"]).append_column("hot", hot)
    rows = pa.array(range(batch.num_rows), pa.int64())
    return made.append_column("__row", rows).filter(decides)
