from collections.abc import Callable

import pytest

from connectors.conformance.crashing import Steps
from connectors.conformance.sinks import BATCHES, SinkWorld, check_sink
from connectors.sink import Batch, Marker, Refuse, RefusedChange
from pipeline.clock import Deadline
from schemas.json_value import JsonObject
from tests.unit.connectors.twins import MemorySink, MemoryTarget, TickingClock

UNFIT: JsonObject = {"unfit": True}


def worlds(kind: type[MemorySink]) -> Callable[[], SinkWorld]:
    """Targets in memory, which lose nothing in a crash."""

    def make() -> SinkWorld:
        target = MemoryTarget(refuses=UNFIT)
        return SinkWorld(
            lambda steps: kind(target, steps),
            lambda: target.rows,
            lambda: None,
            TickingClock(),
            UNFIT,
        )

    return make


def test_a_sink_that_fulfils_its_contract_passes() -> None:
    """With a crash before and after each of its steps."""
    assert check_sink(worlds(MemorySink)) >= 2 * BATCHES


class MarkerLater(MemorySink):
    """Stores the marker after the rows."""

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """In two steps."""
        before = self.target.marker
        super().write(batch, refuse, deadline)
        after, self.target.marker = self.target.marker, before
        self.step()
        self.target.marker = after


class MarkerFirst(MemorySink):
    """Stores the rows after the marker."""

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """In two steps."""
        before, self.target.marker = self.target.marker, batch.marker
        self.step()
        self.target.marker = before
        super().write(batch, refuse, deadline)


class Shared(MemorySink):
    """Lets two write."""

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """Also if another one has opened the target."""
        self.target.writer = self
        super().write(batch, refuse, deadline)


class Forgetting(MemorySink):
    """Has no marker."""

    def open(self, deadline: Deadline) -> Marker | None:
        """As if the target were empty."""
        super().open(deadline)
        return None


class RefusingLater(MemorySink):
    """Refuses a row after the batch is stored."""

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """In two steps."""
        later: list[RefusedChange] = []
        super().write(batch, later.extend, deadline)
        self.step()
        refuse(later)


class Stepless(MemorySink):
    """Takes no steps, so that nothing is tried."""

    def __init__(self, target: MemoryTarget, step: Callable[[], None]) -> None:
        del step
        super().__init__(target, Steps())


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (MarkerLater, "(1, 4)"),
        (MarkerFirst, "(1, 4)"),
        (Shared, "(3)"),
        (Forgetting, "(2)"),
        (RefusingLater, "(7)"),
        (Stepless, "tries nothing"),
    ],
)
def test_a_sink_that_breaks_an_obligation_is_found(kind: type[MemorySink], says: str) -> None:
    """With the number of the obligation."""
    with pytest.raises(AssertionError) as found:
        check_sink(worlds(kind))
    assert says in str(found.value)
