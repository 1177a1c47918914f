"""The output partition of a result: that of its input record, or by a hash of its key.

The lane chooses it, and not the driver: the driver learns by itself when a topic gets more
partitions, and could write into one that the lane's boundaries do not name yet. Keys are hashed as
Kafka's own clients do. No Spark in here.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from brokers.partitioner import partitions_of

BY_KEY: Final = -1
"""Stands for a partition that the key decides."""


def placed(wanted: Sequence[int], hashed: Sequence[bytes], partitions: int) -> list[int]:
    """The partition of each result.

    Args:
        wanted: partitions of input records, which a smaller topic takes modulo its own number; or
            `BY_KEY`.
        hashed: what decides otherwise: key bytes, or those of the value where there is no key.
        partitions: how many the topic has.
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
