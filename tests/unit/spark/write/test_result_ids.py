"""Ids of results that may be written twice."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import (
    FragmentId,
    FragmentName,
    NetworkId,
    NetworkName,
    ParticipantId,
)
from pipeline.spark.batch.results import Record
from pipeline.spark.write.result_ids import ResultIds


def fragment(name: str) -> FragmentId:
    """A fragment."""
    network = NetworkId(ParticipantId("local"), NetworkName("net"))
    return FragmentId(network, FragmentName(name))


COUNTS = fragment("counts")
RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=2),
        st.binary(max_size=2),
        st.integers(-2, 2),
        st.integers(0, 1),
    ),
    max_size=12,
)


def ids(records: list[Record], cut: str = "7.3", of: FragmentId = COUNTS) -> list[bytes]:
    """The ids of results, in their order."""
    found = ResultIds(of, cut)
    return [found.of(record) for record in records]


@given(RECORDS, st.randoms())
def test_a_repetition_gives_the_same_ids_in_any_order(records: list[Record], rng: object) -> None:
    """Each id has one content, and each result an id of its own."""
    again = list(records)
    rng.shuffle(again)  # type: ignore[attr-defined]
    first = dict(zip(ids(records), records, strict=True))
    assert first == dict(zip(ids(again), again, strict=True))
    assert len(first) == len(records)


def test_an_id_names_its_batch_and_its_fragment() -> None:
    """Equal results of another batch, or of another writer of the topic, are other results."""
    record: list[Record] = [(b"k", b"v", 5, 0)]
    (one,) = ids(record)
    assert one.startswith(b"7.3/")
    assert len({one, *ids(record, cut="7.4"), *ids(record, of=fragment("tolls"))}) == 3


def test_bytes_do_not_move_between_key_and_value() -> None:
    """No key is not an empty key."""
    records: list[Record] = [(b"ab", b"c", 5, 0), (b"a", b"bc", 5, 0), (None, b"abc", 5, 0)]
    assert len({name.partition(b"/")[2] for name in ids([*records, (b"", b"abc", 5, 0)])}) == 4


def test_equal_results_of_a_batch_are_numbered() -> None:
    """The first one has no number."""
    first, second, third = ids([(None, b"v", 5, 0)] * 3)
    assert (second, third) == (first + b"/1", first + b"/2")
