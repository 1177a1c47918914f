"""A function that is planned and never called."""

import pyarrow as pa


def rate(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The level of every price."""
    return batch.select(["symbol", "level"])
