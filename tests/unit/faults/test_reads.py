from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.faults.history import Kind
from tests.faults.reads import check_reads, check_writers
from tests.faults.segments import Batch, Log, Outcome
from tests.faults.values import counts
from tests.unit.faults.support import OUT, Partition, record

ENDS = st.sampled_from([Outcome.COMMIT, Outcome.ABORT])


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    """A partition with some transactions; epochs only rise, the last one may be open."""
    partition = Partition()
    epoch = 0
    for count, outcome in draw(st.lists(st.tuples(st.integers(1, 4), ENDS), min_size=1)):
        epoch += draw(st.integers(0, 1))
        partition.write(count, outcome, epoch=epoch)
    if draw(st.booleans()):
        partition.write(2, None, epoch=epoch)
    return partition


@given(partitions())
def test_a_correct_history_has_no_findings(partition: Partition) -> None:
    """Aborted and open transactions are no fault as long as they are not read."""
    assert check_reads(partition.reads()) == ()
    assert check_writers([partition.log], guarded=True) == ()


@given(partitions(), st.integers(0, 99), st.booleans())
def test_an_aborted_read_is_reported_with_its_place(
    partition: Partition,
    which: int,
    live: bool,  # noqa: FBT001 - hypothesis draws it
) -> None:
    """Whether it was read during the faults or after them."""
    aborted = [r for r in partition.uncommitted if r not in partition.committed]
    assume(aborted)
    wrong = aborted[which % len(aborted)]
    reads = partition.reads()
    if live:
        reads = replace(reads, observed=(*reads.observed, wrong))
    else:
        reads = replace(reads, committed=(*reads.committed, wrong))
    found = [finding for finding in check_reads(reads) if finding.kind is Kind.ABORTED]
    assert [
        f"net-out, partition 0, offset {wrong.offset} was read" in f.message for f in found
    ] == [True]


def test_a_record_read_only_by_committed_readers_is_reported() -> None:
    """The log has no such record."""
    partition = Partition()
    partition.write(1, Outcome.COMMIT)
    reads = partition.reads()
    reads = replace(reads, committed=(*reads.committed, record(70)))
    assert counts(check_reads(reads)) == {Kind.ABORTED: 1}


@given(partitions(), st.integers(0, 99))
def test_a_committed_record_that_is_not_read_is_reported(partition: Partition, which: int) -> None:
    """A reader may skip no record."""
    assume(partition.committed)
    gone = partition.committed[which % len(partition.committed)]
    left = tuple(r for r in partition.committed if r is not gone)
    (finding,) = check_reads(replace(partition.reads(), committed=left, observed=left))
    assert finding.kind is Kind.UNSEEN
    assert f"topic net-out, partition 0, offset {gone.offset} is committed" in finding.message


@given(partitions(), st.integers(0, 99))
def test_a_record_changed_or_lost_after_it_was_read_is_reported(
    partition: Partition, which: int
) -> None:
    """Stable records are final."""
    assume(partition.committed)
    at = which % len(partition.committed)
    reads = partition.reads()
    other = list(reads.observed)
    other[at] = replace(other[at], value=b"another")
    (changed,) = check_reads(replace(reads, observed=tuple(other)))
    assert changed.kind is Kind.CHANGED
    assert f"offset {other[at].offset} was key" in changed.message
    seen = reads.committed[:at] + reads.committed[at + 1 :]
    kinds = {f.kind for f in check_reads(replace(reads, committed=seen))}
    assert kinds == {Kind.CHANGED, Kind.UNSEEN}


def test_a_gap_in_the_log_is_reported() -> None:
    """Offsets are consecutive, transaction markers included."""
    partition = Partition()
    partition.write(2, Outcome.COMMIT)
    batch = Batch(5, 5, 7, 0, transactional=False, outcome=None)
    log = Log(OUT, 0, (*partition.batches, batch))
    reads = replace(partition.reads(), logs=(log,), committed=(*partition.committed, record(5)))
    reads = replace(reads, uncommitted=(*reads.uncommitted, record(5)))
    (finding,) = check_reads(reads)
    assert finding.kind is Kind.GAP
    assert finding.message == "topic net-out, partition 0, offset 5 follows on offset 2"


def test_records_removed_by_compaction_are_no_gap_and_no_loss() -> None:
    """Of boundaries and markers only the newest has to stay."""
    partition = Partition()
    partition.write(1, Outcome.COMMIT)
    partition.write(1, Outcome.COMMIT)
    log = Log(OUT, 0, tuple(partition.batches[2:]))
    reads = replace(
        partition.reads(),
        logs=(log,),
        committed=tuple(partition.committed[1:]),
        uncommitted=tuple(partition.uncommitted[1:]),
        compacted=frozenset({OUT}),
    )
    assert check_reads(reads) == ()


@given(partitions(), st.integers(0, 3))
def test_a_write_of_a_fenced_writer_is_reported(partition: Partition, outcome: int) -> None:
    """The old writer writes after a newer one, a record or a commit."""
    partition.write(1, Outcome.COMMIT, epoch=90)
    partition.write(1, Outcome.COMMIT, epoch=91)
    partition.write(1, Outcome.COMMIT if outcome else Outcome.ABORT, epoch=90)
    found = check_writers([partition.log], guarded=True)
    assert {finding.kind for finding in found} == {Kind.ZOMBIE}
    assert f"offset {partition.uncommitted[-1].offset} was written by producer 7, its epoch 90" in (
        found[0].message
    )


def test_the_broker_may_abort_the_open_transaction_of_a_fenced_writer() -> None:
    """Its marker has a producer's epoch, but no record was written."""
    partition = Partition()
    partition.write(1, None, epoch=1)
    partition.write(1, Outcome.COMMIT, epoch=2)
    mark = Batch(partition.end, partition.end, 7, 1, transactional=True, outcome=Outcome.ABORT)
    partition.batches.append(mark)
    assert check_writers([partition.log], guarded=True) == ()


def test_records_outside_of_the_fragments_transactions_are_reported() -> None:
    """Without a transaction, or in one of another id."""
    plain = Batch(0, 3, -1, -1, transactional=False, outcome=None)
    log = Log(OUT, 1, (plain,))
    assert check_writers([log], guarded=False) == ()
    (finding,) = check_writers([log], guarded=True)
    assert finding.kind is Kind.UNGUARDED
    assert "partition 1, offset 0 was written by a producer without an id" in finding.message
    first, second = Partition(partition=0), Partition(partition=1)
    first.write(1, Outcome.COMMIT, producer=7)
    second.write(1, Outcome.COMMIT, producer=8)
    (two,) = check_writers([first.log, second.log], guarded=True)
    assert two.kind is Kind.UNGUARDED
    assert "producer 8, its epoch 0 at topic net-out, partition 1, offset 0" in two.message
