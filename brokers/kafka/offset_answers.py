"""Offset specifications of requests, and validation of the offsets in responses."""

from confluent_kafka import OFFSET_INVALID
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported unmarked

from pipeline.ids import Offset


def offset_in(answer: int) -> Offset | None:
    """The offset in a broker's answer; None if the answer has no error, but also no offset.

    A broker that starts may answer so. Used as an end, the value would be below every record.
    """
    return None if answer == OFFSET_INVALID else Offset(answer)


def bounds_in(low: int, high: int) -> tuple[Offset, Offset] | None:
    """The bounds of a partition from the driver; None if one of them may be missing.

    For an answer without one of them the driver returns the other twice, as for an empty partition.
    """
    return (Offset(low), Offset(high)) if 0 <= low < high else None


def latest() -> OffsetSpec:
    """The specification of the end offset."""
    spec: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return spec


def earliest() -> OffsetSpec:
    """The specification of the oldest offset."""
    spec: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    return spec
