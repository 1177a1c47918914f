"""Whether a sink fulfils its contract, `connectors/sink.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.conformance.crashing import Crash, Steps, each_crash
from connectors.sink import Batch, Marker, RefusedChange, Result, Sink
from pipeline.clock import Clock, Deadline
from pipeline.errors import FencedError
from pipeline.ids import Offset, TopicId
from schemas.json_value import JsonObject

BATCHES, ROWS = 4, 3
WITHIN_S = 30.0
TOPIC_ID = TopicId("tried")


@dataclass(frozen=True, slots=True)
class SinkWorld:
    """A target that is tried; it is empty.

    Args:
        open: a new sink, as a new process would make it, that takes a step before and after
            everything that it does to the target.
        stored: the rows that a reader of the target finds, in any order.
        crash: what the machine loses when the process ends in the middle, if anything.
        clock: of deadlines.
        unfit: fields of a row that the target does not accept; None: it accepts all.
    """

    open: Callable[[Steps], Sink]
    stored: Callable[[], Sequence[JsonObject]]
    crash: Callable[[], None]
    clock: Clock
    unfit: JsonObject | None = None


def check_sink(make: Callable[[], SinkWorld]) -> int:
    """Try all obligations; `make` makes a new target each time.

    Returns:
        The number of crashes that were tried.

    Raises:
        AssertionError: an obligation is not fulfilled; says which.
    """
    _check_one_writer(make())
    crashes = each_crash(lambda steps: _check_crash(make(), steps))
    if crashes < BATCHES:
        raise AssertionError(f"the sink took {crashes} steps in {BATCHES} batches: tries nothing")
    return crashes


def batch(number: int, unfit: JsonObject | None = None) -> Batch:
    """The batch of a number: its rows are different from those of all others.

    Args:
        number: from 1 on.
        unfit: the fields of one more row, in the middle.
    """
    first = (number - 1) * ROWS
    found = tuple(
        Result({"n": n, "text": f"row {n}", "none": None}, n % 2, Offset(n // 2), f"id {n}")
        for n in range(first, first + ROWS)
    )
    if unfit is not None:
        found = (found[0], Result(unfit, 2, Offset(number), f"unfit {number}"), *found[1:])
    ends = {0: Offset((number * ROWS + 1) // 2), 1: Offset(number * ROWS // 2)}
    return Batch(found, Marker(number, TOPIC_ID, ends))


def rows(number: int) -> tuple[Result, ...]:
    """The rows of the batch of a number."""
    return tuple(one for one in batch(number).changes if isinstance(one, Result))


def accept_all(refused: Sequence[RefusedChange]) -> None:
    """For batches none of whose rows is refused.

    Raises:
        AssertionError: one is.
    """
    if refused:
        raise AssertionError(f"the sink refuses {refused[0]} (7)")


def _check_crash(world: SinkWorld, steps: Steps) -> None:
    """A run that crashes at a step, and a second one that goes on behind the marker."""
    refused: list[RefusedChange] = []
    try:
        _run(world, steps, refused)
    except Crash:
        world.crash()
        _run(world, Steps(), refused)
    _compare(world, BATCHES, "rows at the end")
    found = {one.change.id for one in refused}
    expected = {f"unfit {n}" for n in range(1, BATCHES + 1)} if world.unfit else set()
    if found != expected:
        raise AssertionError(f"refused rows: found {found}, expected {expected} (7)")


def _run(world: SinkWorld, steps: Steps, refused: list[RefusedChange]) -> None:
    sink = world.open(steps)
    marker = sink.open(_deadline(world))
    number = 0 if marker is None else marker.number
    if marker is not None and marker != batch(number).marker:
        raise AssertionError(f"marker {marker} is not the one that was written (1)")
    _compare(world, number, "rows that are stored when the marker is read (1, 4)")
    for following in range(number + 1, BATCHES + 1):
        sink.write(batch(following, world.unfit), refused.extend, _deadline(world))
        _compare(world, following, "rows after a write (1)")
    sink.close()


def _check_one_writer(world: SinkWorld) -> None:
    """A sink that was opened earlier cannot write any more."""
    older = world.open(Steps())
    older.open(_deadline(world))
    older.write(batch(1), accept_all, _deadline(world))
    newer = world.open(Steps())
    marker = newer.open(_deadline(world))
    if marker != batch(1).marker:
        raise AssertionError(f"a second open finds {marker} (2)")
    try:
        older.write(batch(2), accept_all, _deadline(world))
    except FencedError:
        pass
    else:
        raise AssertionError("a sink that was opened earlier writes (3)")
    newer.write(batch(2), accept_all, _deadline(world))
    _compare(world, 2, "rows of two writers (3)")
    older.close()
    newer.close()


def _compare(world: SinkWorld, batches: int, what: str) -> None:
    expected = sorted((str(row.fields) for n in range(1, batches + 1) for row in rows(n)), key=str)
    found = sorted((str(row) for row in world.stored()), key=str)
    if found != expected:
        raise AssertionError(f"{what}: found {found}, expected {expected}")


def _deadline(world: SinkWorld) -> Deadline:
    return Deadline.after(world.clock, WITHIN_S, "a call of the sink")
