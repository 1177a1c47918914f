from collections.abc import Callable, Sequence

import pytest

from connectors.conformance.sources import SourceWorld, check_source
from connectors.source import Chunk, Limit, Position, Positions, Refused, Row, Source, SplitId
from tests.unit.connectors.twins import SCHEMA, MemorySource, TickingClock, refused, row

SPLITS: dict[SplitId, Sequence[Row | Refused]] = {
    SplitId("a"): (row(1), row(2), refused(3), row(4), row(5)),
    SplitId("b"): (row(6),),
    SplitId("c"): (),
}
EXPECTED = tuple(one.raw for rows in SPLITS.values() for one in rows)


def world(make: Callable[[], Source]) -> SourceWorld:
    """A source with six records, of which one is none."""
    return SourceWorld(make, EXPECTED, SCHEMA, TickingClock())


def test_a_source_that_fulfils_its_contract_passes() -> None:
    """Whatever step its runner crashes at."""
    check_source(world(lambda: MemorySource(dict(SPLITS))))


class Skipping(MemorySource):
    """Passes over what did not fit into a chunk."""

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """The position lies behind all records."""
        found = super().read(split, position, limit)
        return Chunk(found.records, {"next": len(self.splits_of[split])}, found.more)


class Greedy(MemorySource):
    """Does not keep to limits."""

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """All records."""
        del limit
        return super().read(split, position, Limit(1_000, 1_000_000))


class Forgetful(MemorySource):
    """A position means something to the instance that made it only."""

    def splits(self, known: Positions) -> Sequence[SplitId]:
        """Begins anew if it was made anew."""
        self.acknowledged.append(known)
        return super().splits(known)

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """From the beginning in the first round."""
        first = len(self.acknowledged) <= 1
        return super().read(split, None if first else position, limit)


class Consuming(MemorySource):
    """Removes what it has read, before it is stored."""

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """The next records, which nobody can read again."""
        del position
        found = super().read(split, {"next": 0}, limit)
        count = len(found.records)
        self.splits_of[split] = self.splits_of[split][count:]
        left = len(self.splits_of[split])
        return Chunk(found.records, {"left": left}, found.more)


@pytest.mark.parametrize(
    ("kind", "says"),
    [(Skipping, "(2)"), (Greedy, "(5)"), (Forgetful, "(3)")],
)
def test_a_source_that_breaks_an_obligation_is_found(kind: type[MemorySource], says: str) -> None:
    """With the number of the obligation."""
    with pytest.raises(AssertionError) as found:
        check_source(world(lambda: kind(dict(SPLITS))))
    assert says in str(found.value)


def test_a_source_that_consumes_what_it_reads_is_found() -> None:
    """Its second reader finds less."""
    shared = dict(SPLITS)
    with pytest.raises(AssertionError, match=r"records of all chunks \(2\)"):
        check_source(world(lambda: Consuming(shared)))
