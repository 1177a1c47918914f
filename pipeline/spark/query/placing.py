"""The output partition of a result: that of its input record, or by a hash of its key.

The lane chooses it, and not the driver: the driver learns by itself when a topic gets more
partitions, and could write into one that the lane's boundaries do not name yet. Keys are hashed as
Kafka's own clients do. No Spark in here.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

BY_KEY: Final = -1
"""Stands for a partition that the key decides."""

_SEED: Final = 0x9747B28C
_FACTOR: Final = np.uint32(0x5BD1E995)
_WORD: Final = 4


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
        hashes = murmur2(np.frombuffer(data, np.uint8).reshape(len(rows), int(length)))
        found[rows] = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)
    chosen: list[int] = found.tolist()
    return chosen


def murmur2(keys: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Kafka's hash of keys of one length, a row for each; multiplications wrap at 32 bits."""
    count, length = keys.shape
    whole = length - length % _WORD
    hashed = np.full(count, _SEED ^ length, np.uint32)
    for word in np.ascontiguousarray(keys[:, :whole]).view("<u4").T:
        mixed = word.astype(np.uint32) * _FACTOR
        mixed ^= mixed >> np.uint32(24)
        hashed = hashed * _FACTOR ^ mixed * _FACTOR
    if whole < length:
        for place, byte in enumerate(keys[:, whole:].T):
            hashed ^= byte.astype(np.uint32) << np.uint32(8 * place)
        hashed *= _FACTOR
    hashed ^= hashed >> np.uint32(13)
    hashed *= _FACTOR
    hashed ^= hashed >> np.uint32(15)
    return hashed
