import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.segments import (
    Batch,
    DamagedLogError,
    Log,
    Outcome,
    offsets_of,
    outcomes,
    read_segment,
)
from tests.unit.faults.support import OUT, Partition, batch_bytes

ENDS = st.sampled_from([Outcome.COMMIT, Outcome.ABORT])
TRANSACTIONS = st.lists(st.tuples(st.integers(1, 5), ENDS, st.integers(0, 3)), max_size=12)


@given(TRANSACTIONS, st.integers(0, 60))
def test_batches_round_trip(transactions: list[tuple[int, Outcome, int]], cut: int) -> None:
    """Every batch is read as written, and a truncated one at the end of the file is omitted."""
    partition = Partition()
    for count, outcome, epoch in transactions:
        partition.write(count, outcome, epoch=epoch)
    data = b"".join(batch_bytes(batch, [b"x" * 9]) for batch in partition.batches)
    assert list(read_segment(data)) == partition.batches
    if data:
        assert list(read_segment(data[: len(data) - 1 - cut])) in (
            partition.batches[:-1],
            partition.batches[:-2],
        )


def test_another_version_of_batches_is_refused() -> None:
    """An unknown format is an error, not an empty log."""
    data = bytearray(batch_bytes(Batch(0, 0, 1, 0, transactional=False, outcome=None)))
    data[16] = 1
    with pytest.raises(DamagedLogError, match="byte 16: version 1"):
        list(read_segment(bytes(data)))


def test_a_transaction_is_all_batches_of_its_producer_since_the_last_marker() -> None:
    """Two producers may write at once; each marker ends its own producer's batches."""
    mine = [Batch(0, 1, 7, 0, transactional=True, outcome=None)]
    other = [Batch(2, 2, 8, 0, transactional=True, outcome=None)]
    mine.append(Batch(3, 3, 7, 0, transactional=True, outcome=None))
    marks = [
        Batch(4, 4, 7, 1, transactional=True, outcome=Outcome.ABORT),
        Batch(5, 5, 8, 0, transactional=True, outcome=Outcome.COMMIT),
    ]
    left = Batch(6, 9, 7, 1, transactional=True, outcome=None)
    log = Log(OUT, 0, (mine[0], *other, mine[1], *marks, left))
    assert dict(outcomes(log)) == {
        mine[0]: Outcome.ABORT,
        mine[1]: Outcome.ABORT,
        other[0]: Outcome.COMMIT,
        left: None,
    }
    assert list(offsets_of([left])) == [6, 7, 8, 9]
