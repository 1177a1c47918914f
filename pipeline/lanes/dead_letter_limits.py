"""Limits of dead letters (`stop_above`): counts them and rejects a batch above a limit. Pure.

A dead letter counts for the box that could not compute it, else for the stream. Late records never
count: `lateness` decides their number. A limit with a span counts in windows of that size, end to
end since 1970, by the Kafka timestamp of the refused record: the result is independent of when, and
how often, records are read. The counts are part of the commit marker.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pipeline import durations
from pipeline.counting import counted
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.lanes.dead_letter_reasons import LATENESS
from pipeline.lanes.dead_letters import Context
from pipeline.markers.refused import Refused
from pipeline.network.model import Limit

WINDOWS_MAX = 64
"""Maximum number of windows per limit; the newest are kept."""
SHOWN = 3
"""Maximum number of dead letters in the error message."""
_EVALUATION_FAILED = "evaluation_failed"


class TooManyDeadLettersError(RefusedError):
    """A batch contains more dead letters than the document accepts."""

    code = "too-many-dead-letters"


def count(
    limits: Iterable[Limit],
    before: Mapping[str, Refused],
    letters: Sequence[Context],
    place: str,
) -> dict[str, Refused]:
    """Compute the counts after a batch.

    Args:
        limits: of the fragment.
        before: the counts after the last batch; those without this limit are dropped.
        letters: dead letters of the batch.
        place: names the fragment, for the error.

    Raises:
        TooManyDeadLettersError: a window exceeds its limit.
    """
    found: dict[str, Refused] = {}
    for limit in limits:
        last = before.get(limit.of)
        windows = Counter(last.windows if last and last.within_ms == limit.within_ms else {})
        own = [letter for letter in letters if _refused_by(letter) == limit.of]
        for letter in own:
            windows[_window(letter.timestamp_ms, limit)] += 1
        for letter in own:
            window = _window(letter.timestamp_ms, limit)
            if windows[window] > limit.most:
                these = [one for one in own if _window(one.timestamp_ms, limit) == window]
                raise _too_many(limit, windows[window], these, place)
        if windows:
            newest = sorted(windows)[-WINDOWS_MAX:]
            found[limit.of] = Refused(limit.within_ms, {w: windows[w] for w in newest})
    return found


def _refused_by(letter: Context) -> str | None:
    if letter.reason in LATENESS:
        return None
    return letter.box if letter.reason == _EVALUATION_FAILED else letter.input


def _window(timestamp_ms: Millis, limit: Limit) -> int:
    """The number of a window; a record without a timestamp has a negative timestamp."""
    return 0 if limit.within_ms is None else max(timestamp_ms, 0) // limit.within_ms


def _too_many(
    limit: Limit, total: int, letters: Sequence[Context], place: str
) -> TooManyDeadLettersError:
    kind = "box" if letters[0].reason == _EVALUATION_FAILED else "stream"
    within = "" if limit.within_ms is None else f" within {durations.format(limit.within_ms)}"
    reasons = Counter(letter.reason for letter in letters)
    words = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
    first = "; ".join(f"{_where(letter)}: {letter.message}" for letter in letters[:SHOWN])
    return TooManyDeadLettersError(
        f"{kind} {limit.of} has {counted(total, 'dead letter')}{within}, and bears at most "
        f"{limit.most}; its batch is not written: {words}, first {first}",
        place=place,
        hint="mend the cause, then pause the fragment and resume it; or deploy a higher "
        f"`stop_above` for {kind} {limit.of}, and they go to the dead letters.",
    )


def _where(letter: Context) -> str:
    if letter.topic is None:
        return f"a result of box {letter.box}"
    return f"topic {letter.topic}, partition {letter.partition}, offset {letter.offset}"
