"""State of an as-of join: waiting rows and table versions per key, released by the watermark. Pure.

Called by Spark for each bucket of keys. Rows wait until event time has passed them, since until
then a version for their time may arrive. The versions that a later row may match are kept: the
latest one that event time has passed, and all after it. Results are independent of the order of
arrival.
"""

import json
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from pipeline.ids import Millis


class Waiting(NamedTuple):
    """A waiting row: its event time in milliseconds, and the encoded row."""

    at_ms: int
    row: bytes


class Version(NamedTuple):
    """A table version, valid from an event time on; of equal times the last by `place` is."""

    at_ms: int
    place: str
    row: bytes


class KeyState(NamedTuple):
    """State of one key, both sorted."""

    waiting: tuple[Waiting, ...] = ()
    versions: tuple[Version, ...] = ()


NOTHING = KeyState()


class Result(NamedTuple):
    """A row and the version valid at its time; None: there was none."""

    at_ms: int
    left: bytes
    right: bytes | None


class Settled(NamedTuple):
    """Outcome of `settle` for a key.

    Args:
        results: of the rows that event time has passed, in order of time.
        state: the new state.
        again_ms: the key is due once event time is beyond this; None: only when a row arrives.
    """

    results: tuple[Result, ...]
    state: KeyState
    again_ms: int | None


def settle(
    state: KeyState,
    waiting: Iterable[Waiting],
    versions: Iterable[Version],
    watermark_ms: Millis | None,
    within_ms: int,
) -> Settled:
    """Add new rows and versions of a key, and release the rows that event time has passed.

    Args:
        state: the state.
        waiting: new rows.
        versions: new versions.
        watermark_ms: no more rows at or below it; None: the input is complete.
        within_ms: maximum age of a matching version.
    """
    rows = sorted((*state.waiting, *waiting), key=itemgetter(0))
    known = sorted((*state.versions, *versions), key=itemgetter(0, 1))
    times = [version.at_ms for version in known]
    passed = len(rows)
    if watermark_ms is not None:
        passed = bisect_right(rows, watermark_ms, key=itemgetter(0))
    results = tuple(
        Result(row.at_ms, row.row, _holding(known, times, row.at_ms, within_ms))
        for row in rows[:passed]
    )
    if watermark_ms is None:
        return Settled(results, NOTHING, None)
    left = KeyState(tuple(rows[passed:]), _kept(known, times, watermark_ms, within_ms))
    return Settled(results, left, _again_ms(left, within_ms))


def _holding(known: list[Version], times: list[int], at_ms: int, within_ms: int) -> bytes | None:
    """The version valid at a time."""
    before = bisect_right(times, at_ms)
    if not before or at_ms - times[before - 1] > within_ms:
        return None
    return known[before - 1].row


def _kept(
    known: list[Version], times: list[int], watermark_ms: int, within_ms: int
) -> tuple[Version, ...]:
    """The versions that may match above the watermark."""
    first = max(0, bisect_right(times, watermark_ms) - 1)
    if known and times[first] <= watermark_ms - within_ms:
        first += 1
    return tuple(known[first:])


def _again_ms(state: KeyState, within_ms: int) -> int | None:
    """When the first row is released or a version expires; each beyond the watermark.

    Never 0, which Spark treats as no time: no watermark is ever just past the first millisecond.
    """
    moments = [max(1, row.at_ms - 1) for row in state.waiting[:1]]
    match state.versions:
        case (only,):
            moments.append(only.at_ms + within_ms)
        case (*_, last):
            moments.append(last.at_ms)
    return min(moments, default=None)


def encoded(state: KeyState) -> str:
    """Encode the state of a key as text."""
    waiting = [(at_ms, b64encode(row).decode()) for at_ms, row in state.waiting]
    versions = [(at_ms, place, b64encode(row).decode()) for at_ms, place, row in state.versions]
    return json.dumps((waiting, versions), separators=(",", ":"))


def decoded(text: str) -> KeyState:
    """Decode the text of `encoded`."""
    waiting, versions = json.loads(text)
    return KeyState(
        tuple(Waiting(at_ms, b64decode(row)) for at_ms, row in waiting),
        tuple(Version(at_ms, place, b64decode(row)) for at_ms, place, row in versions),
    )


# --- buckets of keys ----------------------------------------------------------------------------


class Kept(NamedTuple):
    """Entry of a key in a bucket: when it is due again, and its `encoded` state."""

    again_ms: int
    text: str


Bucket = Mapping[str, Kept]
"""State of several keys: a call by Spark per key would cost more than the work for it."""


class New(NamedTuple):
    """New rows and versions of one key."""

    waiting: list[Waiting]
    versions: list[Version]


def settle_bucket(
    bucket: Bucket, new: Mapping[str, New], watermark_ms: Millis | None, within_ms: int
) -> tuple[tuple[Result, ...], Bucket]:
    """Settle all keys with new or due rows; returns results and the new bucket.

    Args:
        bucket: the state.
        new: new rows and versions by key.
        watermark_ms: no more rows at or below it; None: the input is complete.
        within_ms: maximum age of a matching version.
    """
    left = dict(bucket)
    results: list[Result] = []
    due = () if watermark_ms is None else _due(bucket, watermark_ms)
    for key in dict.fromkeys((*new, *due)):
        kept = left.pop(key, None)
        state = NOTHING if kept is None else decoded(kept.text)
        waiting, versions = new.get(key, _NOTHING_NEW)
        settled = settle(state, waiting, versions, watermark_ms, within_ms)
        results += settled.results
        if settled.again_ms is not None:
            left[key] = Kept(settled.again_ms, encoded(settled.state))
    return tuple(results), left


_NOTHING_NEW = New([], [])


def _due(bucket: Bucket, watermark_ms: Millis) -> Iterator[str]:
    return (key for key, kept in bucket.items() if kept.again_ms < watermark_ms)


def bucket_again_ms(bucket: Bucket) -> int | None:
    """When the first key of a bucket is due; None: it is empty."""
    return min((kept.again_ms for kept in bucket.values()), default=None)


def bucket_text(bucket: Bucket) -> str:
    """Encode a bucket as text: Spark's state for Python cannot contain lists of rows."""
    return json.dumps(bucket, separators=(",", ":"))


def bucket_of(text: str) -> Bucket:
    """Decode the text of `bucket_text`."""
    return {key: Kept(*kept) for key, kept in json.loads(text).items()}
