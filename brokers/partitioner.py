"""Kafka's default partitioner: murmur2 hash of the key, as in the Java clients."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_SEED: Final = 0x9747B28C
_FACTOR: Final = np.uint32(0x5BD1E995)
_WORD: Final = 4


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of one key."""
    return int(partitions_of(np.frombuffer(key, np.uint8).reshape(1, len(key)), partitions)[0])


def partitions_of(keys: NDArray[np.uint8], partitions: int) -> NDArray[np.uint32]:
    """The partitions of keys of one length, a row for each."""
    return (murmur2(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)


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
