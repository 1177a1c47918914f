"""The output partitions of results."""

from hypothesis import given
from hypothesis import strategies as st

from brokers.partitioner import partition_of
from pipeline.spark.query.placing import BY_KEY, placed


@given(
    st.lists(st.tuples(st.integers(BY_KEY, 9), st.binary(max_size=12)), max_size=50),
    st.integers(1, 8),
)
def test_each_result_is_in_the_partition_of_its_record_or_its_key(
    rows: list[tuple[int, bytes]], partitions: int
) -> None:
    """Many keys at once as each alone."""
    found = placed([expected for expected, _ in rows], [key for _, key in rows], partitions)
    for (expected, key), partition in zip(rows, found, strict=True):
        if expected != BY_KEY:
            assert partition == expected % partitions
        else:
            assert partition == partition_of(key, partitions)
