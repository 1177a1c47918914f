"""Partitioning by key, compared with the hash of Kafka's Java client."""

import numpy as np
import pytest

from brokers.partitioner import murmur2, partition_of

KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""From the tests of Kafka's Java client."""


@pytest.mark.parametrize("key", KNOWN)
def test_the_key_hash_equals_that_of_the_java_client(key: bytes) -> None:
    """So that a key is in the partition where every other client expects it."""
    (hashed,) = murmur2(np.frombuffer(key, np.uint8).reshape(1, len(key)))
    assert hashed == KNOWN[key] & 0xFFFFFFFF
    assert partition_of(key, 5) == (KNOWN[key] & 0x7FFFFFFF) % 5
