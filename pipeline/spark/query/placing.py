"""Partitioner of results: the partition of the input record, or a hash of the key.

The lane partitions, not the Kafka driver: the driver detects new partitions of a topic by itself,
and could write into one that the lane's boundaries do not contain yet. Keys are hashed as by
Kafka's own clients. Independent of Spark.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from brokers.partitioner import partitions_of

BY_KEY: Final = -1
"""Value for a partition that the key decides."""


def placed(wanted: Sequence[int], hashed: Sequence[bytes], partitions: int) -> list[int]:
    """The partition of each result.

    Args:
        wanted: partitions of input records, used modulo the number of partitions; or `BY_KEY`.
        hashed: key bytes, or those of the value if there is no key.
        partitions: number of partitions of the topic.
    """
    if partitions == 1:
        return [0] * len(wanted)
    given = np.array(wanted, np.int64)
    found = given % partitions
    lengths = np.array([len(one) for one in hashed], np.int64)
    lengths[given != BY_KEY] = -1
    for length in np.unique(lengths[lengths >= 0]):
        rows: list[int] = np.flatnonzero(lengths == length).tolist()
        data = b"".join(hashed[row] for row in rows)
        keys = np.frombuffer(data, np.uint8).reshape(len(rows), int(length))
        found[rows] = partitions_of(keys, partitions)
    chosen: list[int] = found.tolist()
    return chosen
