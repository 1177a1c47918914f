"""Questions about offsets, and the offsets in their answers."""

from confluent_kafka import OFFSET_INVALID
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported unmarked

from pipeline.ids import Offset


def offset_in(answer: int) -> Offset | None:
    """The offset that a broker answered; None if it answered without an error, but with no offset.

    While it starts, it may. Taken as an end, that would lie before every record.
    """
    return None if answer == OFFSET_INVALID else Offset(answer)


def bounds_in(low: int, high: int) -> tuple[Offset, Offset] | None:
    """The bounds that the driver answered for a partition; None if one of them may be missing.

    It makes an empty partition of an answer that lacks one: at the offset that it has.
    """
    return (Offset(low), Offset(high)) if 0 <= low < high else None


def latest() -> OffsetSpec:
    """Asks for ends."""
    spec: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return spec


def earliest() -> OffsetSpec:
    """Asks for the oldest offsets."""
    spec: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    return spec
