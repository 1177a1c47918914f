"""The output partitions of results, against Kafka's own hash."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.spark.query.placing import BY_KEY, murmur2, placed

KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""From the tests of Kafka's Java client."""


def hashed(key: bytes) -> int:
    """The hash of one key."""
    return int(murmur2(np.frombuffer(key, np.uint8).reshape(1, len(key)))[0])


@pytest.mark.parametrize("key", KNOWN)
def test_a_key_is_hashed_as_by_the_java_client(key: bytes) -> None:
    """So that a key lies where every other client expects it."""
    assert hashed(key) == KNOWN[key] & 0xFFFFFFFF


@given(
    st.lists(st.tuples(st.integers(BY_KEY, 9), st.binary(max_size=12)), max_size=50),
    st.integers(1, 8),
)
def test_each_result_goes_where_its_record_or_its_key_says(
    rows: list[tuple[int, bytes]], partitions: int
) -> None:
    """Many keys at once as each alone."""
    found = placed([wanted for wanted, _ in rows], [key for _, key in rows], partitions)
    for (wanted, key), partition in zip(rows, found, strict=True):
        if wanted != BY_KEY:
            assert partition == wanted % partitions
        else:
            assert partition == (hashed(key) & 0x7FFFFFFF) % partitions
