"""A small output with forks, settlers that crash, and readers; for property tests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from pipeline.ids import Epoch, Millis
from pipeline.tentative.generation import Generation, following
from pipeline.tentative.records import TentativeRecord, TentativeResult, digest, done_marks
from pipeline.tentative.restoring import restored
from pipeline.tentative.settling import Settling

PARTITIONS = 2
IDS = 8
LAST_MS = Millis(1_000)
ALL = 1_000
FIRST = Generation(Epoch(1), 1)

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["stable", "promise", "fork", "result", "result", "settle", "crash"]),
        st.integers(0, IDS - 1),
        st.integers(0, 3),
    ),
    max_size=40,
)
TRUTH = st.lists(st.sampled_from([None, b"v0", b"v1"]), min_size=IDS, max_size=IDS)


@dataclass(frozen=True)
class StableRecord:
    """A stable result."""

    id: bytes
    value: bytes
    timestamp_ms: Millis
    partition: int


@dataclass(frozen=True)
class Promise:
    """A boundary, with the number of records of each partition that it covers."""

    boundary_ms: Millis
    positions: tuple[int, ...]


def time_of(number: int) -> Millis:
    """The event time of a result; two have one time."""
    return Millis(10 * (number // 2))


def id_of(number: int) -> bytes:
    """The id of a result."""
    return f"{number}".encode()


@dataclass
class World:
    """The topics of one output, and its settler.

    Args:
        truth: the stable value of each id; None: there is no such result.
    """

    truth: Sequence[bytes | None]
    stable: list[list[StableRecord]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    tentative: list[list[TentativeRecord]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    promises: list[Promise] = field(default_factory=list)
    settling: Settling = field(default_factory=Settling)
    fork: Generation = FIRST
    read: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    emitted: set[int] = field(default_factory=set)

    def step(self, kind: str, number: int, choice: int) -> None:
        """One step; `choice` is a value, or how many records are sent before a crash."""
        match kind:
            case "stable":
                self._emit(number)
            case "promise":
                self.promise(time_of(number))
            case "fork":
                self.settling.end(self.fork)
                self.fork = following(self.fork, self.fork.epoch)
            case "result":
                self._result(number, b"v%d" % (choice % 2))
            case "settle":
                self.settle()
            case _:
                self.settle(choice)
                self._crash()

    def promise(self, boundary_ms: Millis) -> None:
        """All stable results up to a time are written, then a boundary."""
        for number in range(IDS):
            if time_of(number) <= boundary_ms:
                self._emit(number)
        last_ms = max((one.boundary_ms for one in self.promises), default=boundary_ms)
        positions = tuple(len(log) for log in self.stable)
        self.promises.append(Promise(max(boundary_ms, last_ms), positions))

    def settle(self, most: int = ALL) -> None:
        """The settler reads up to the last boundary, and sends at most so many records."""
        if not self.promises:
            return
        self._read(self.promises[-1].positions)
        settled = self.settling.settle(self.promises[-1].boundary_ms)
        records: list[TentativeRecord] = list(settled.undone)
        for generation in settled.done:
            records += done_marks(generation, settled.promised_ms, PARTITIONS)
        for record in records[:most]:
            self.tentative[record.partition].append(record)

    def finish(self, most: int = ALL) -> None:
        """The boundary passes everything, and the fork ends."""
        self.settling.end(self.fork)
        self.promise(LAST_MS)
        self.settle(most)

    def records(self) -> Iterator[TentativeRecord]:
        """The tentative topic, one partition after another."""
        for log in self.tentative:
            yield from log

    def _emit(self, number: int) -> None:
        value = self.truth[number]
        if value is not None and number not in self.emitted:
            record = StableRecord(id_of(number), value, time_of(number), number % PARTITIONS)
            self.stable[record.partition].append(record)
        self.emitted.add(number)

    def _result(self, number: int, value: bytes) -> None:
        partition = number % PARTITIONS
        result = TentativeResult(None, value, time_of(number), partition, id_of(number), self.fork)
        self.tentative[partition].extend(self.settling.register([result]).accepted)

    def _read(self, positions: Sequence[int]) -> None:
        for partition, log in enumerate(self.stable):
            for record in log[self.read[partition] : positions[partition]]:
                self.settling.stable(record.id, digest(record.value), record.timestamp_ms)
            self.read[partition] = max(self.read[partition], positions[partition])

    def _crash(self) -> None:
        self.settling = restored(self.records(), PARTITIONS).settling
        self.read = [0] * PARTITIONS
        self.fork = Generation(Epoch(self.fork.epoch + 1), 1)
