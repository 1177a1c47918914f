"""Counts dead letters against `stop_above`, and stops a batch that exceeds a limit. Pure.

A letter counts where it was refused: at the box that could not compute it, else at the stream. Late
records never count: how many of them come is what `lateness` decides. A limit with a span counts in
windows of that size, end to end since 1970, by the Kafka timestamp of the refused record: so the
same records are too many however often, and whenever, they are read. The counts travel with the
commit marker.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pipeline import durations
from pipeline.counting import counted
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.lanes.dead_letters import LATENESS, Context
from pipeline.markers.refused import Refused
from pipeline.network.model import Limit

WINDOWS_MAX = 64
"""So many of the newest windows are remembered for each limit."""
SHOWN = 3
"""So many of the letters that were too many are told."""
_EVALUATION_FAILED = "evaluation_failed"


class TooManyDeadLettersError(RefusedError):
    """A batch holds more records that cannot be processed than the document bears."""

    code = "too-many-dead-letters"


def count(
    limits: Iterable[Limit],
    before: Mapping[str, Refused],
    letters: Sequence[Context],
    place: str,
) -> dict[str, Refused]:
    """The counts after a batch.

    Args:
        limits: of the fragment.
        before: the counts after the last batch; those of another span, or without a limit, are
            forgotten.
        letters: what the batch sends to the dead letters.
        place: names the fragment, for the error.

    Raises:
        TooManyDeadLettersError: the batch makes a window hold more than its limit.
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
    """The number of a window; a record without a timestamp has a negative one."""
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
