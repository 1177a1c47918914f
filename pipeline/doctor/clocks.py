"""Findings about clocks, compared with that of the broker that stamps the heartbeats. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from pipeline import durations
from pipeline.doctor.facts import Finding, Verdict
from pipeline.heartbeats.clocks import ClockOffset

SKEW_MS: Final = 5_000
"""A synchronised clock is right to less than a tenth of a second."""
_WHAT: Final = "clocks"
_SYNCHRONISE: Final = " Synchronise it, by NTP for instance."
_NODE: Final = (
    "no result depends on it; times in its logs, in `status` and in the event log, and lags, are "
    "wrong by as much. Producers on that machine may send records that are late, or ahead."
)
_HERE: Final = (
    "times given to commands, such as `1h` ago, depend on it, as do warnings about retention, and "
    "`dlq redrive`, to an hour. Producers here may send records that are late, or ahead."
)
_BROKER: Final = (
    "or all others are wrong. Retention, also of dead letters, the longest life of a transaction "
    "and timestamps of topics with `LogAppendTime` depend on the clocks of brokers."
)


def of_clocks(offsets: Sequence[ClockOffset]) -> Iterator[Finding]:
    """What is wrong with clocks; one line if nothing is, none if none could be compared."""
    off = [one for one in offsets if abs(one.sure_ms) > SKEW_MS]
    if offsets and not off:
        names = _listed([_name(one) for one in offsets])
        text = f"those of {names} are at most {durations.spell(SKEW_MS)} from the broker's"
        yield Finding(_WHAT, Verdict.GOOD, text)
    elif len(off) > 1 and _is_of_broker(offsets):
        least_ms = min(abs(one.sure_ms) for one in off)
        names = _listed([_name(one) for one in off])
        text = f"that of the broker is {_behind(-off[0].sure_ms, least_ms)} those of {names}"
        yield Finding(_WHAT, Verdict.DOUBTFUL, text, hint=f"{_BROKER}{_SYNCHRONISE}")
    else:
        for one in off:
            text = f"that of {_name(one)} is {_behind(one.sure_ms, abs(one.sure_ms))} the broker's"
            hint = _HERE if one.node is None else _NODE
            yield Finding(_WHAT, Verdict.DOUBTFUL, text, _name(one), f"{hint}{_SYNCHRONISE}")


def _is_of_broker(offsets: Sequence[ClockOffset]) -> bool:
    """Whether all clocks agree with each other, and not with the broker's."""
    agree = max(one.least_ms for one in offsets) - min(one.most_ms for one in offsets) <= SKEW_MS
    return agree and all(abs(one.sure_ms) > SKEW_MS for one in offsets)


def _behind(ahead_ms: int, by_ms: int) -> str:
    span = durations.spell(by_ms // 1_000 * 1_000)
    return f"{span} {'ahead of' if ahead_ms > 0 else 'behind'}"


def _name(one: ClockOffset) -> str:
    return "this machine" if one.node is None else f"node {one.node}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
