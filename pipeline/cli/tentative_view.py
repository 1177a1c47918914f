"""Tentative results of a fragment, and what its results wait for, as commands print them. Pure."""

from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.cli.times import span, time_text
from pipeline.counting import counted
from pipeline.lanes.fork_phases import ForkPhase
from schemas.json_value import JsonObject

_NOTHING = "-"
_SHOWN = 3
"""The partitions that are named."""


def tentative_text(status: FragmentStatus) -> str:
    """What its fork does, why, and how many results are open."""
    count = status.tentative_open
    rest = f"; {count:,} open" if count else ""
    match status.tentative:
        case None | ForkPhase.ABSENT:
            return f"settling {count:,}" if count else _NOTHING
        case ForkPhase.PUBLISHING:
            return f"publishing for {_age(status)}: {_missing(status)}{rest}"
        case ForkPhase.RESTING:
            return f"failed{rest}"
        case ForkPhase.PREPARING | ForkPhase.READY as phase:
            return f"{phase.value}{rest}"


def tentative_problem(status: FragmentStatus) -> str:
    """Why no tentative results come that should, or are not settled; empty: all is well."""
    unsettled = status.tentative_unsettled
    problems = (
        ("failed", status.tentative_problem if status.tentative is ForkPhase.RESTING else ""),
        ("are not settled", unsettled),
    )
    texts = (f"tentative results {what}: {' '.join(why.split())}" for what, why in problems if why)
    return "; ".join(texts)


def tentative_data(status: FragmentStatus) -> JsonObject | None:
    """The same for programs; None: it has no tentative results, or does not run."""
    if status.tentative is None:
        return None
    return {
        "phase": status.tentative.value,
        "since": time_text(status.tentative_since_ms),
        "held_since": time_text(status.tentative_held_since_ms),
        "missing": list(status.tentative_missing),
        "generation": status.tentative_generation or None,
        "published": status.tentative_published,
        "confirmed": status.tentative_confirmed,
        "replaced": status.tentative_replaced,
        "undone": status.tentative_undone,
        "open": status.tentative_open,
        "problem": status.tentative_problem,
        "unsettled": status.tentative_unsettled,
    }


def waits_text(waits: UsualWaits) -> str:
    """How long results usually wait for the last partition, of how many minutes that is known."""
    return (
        f"results wait up to {span(waits.usual_ms)} for the last partition in 95 % of "
        f"{counted(waits.minutes, 'minute')}, and up to {span(waits.longest_ms)} in all of them"
    )


def waits_data(waits: UsualWaits | None) -> JsonObject | None:
    """The same for programs; None: too little was measured."""
    if waits is None:
        return None
    return {
        "usual_ms": waits.usual_ms,
        "longest_ms": waits.longest_ms,
        "minutes": waits.minutes,
    }


def _age(status: FragmentStatus) -> str:
    since_ms = status.tentative_since_ms
    return span(0 if since_ms is None else max(0, status.reported_at_ms - since_ms))


def _missing(status: FragmentStatus) -> str:
    missing = status.tentative_missing
    if not missing:
        return "nothing is missing any more"
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    verb = "is" if len(missing) == 1 else "are"
    return f"{', '.join(missing[:_SHOWN])}{more} {verb} missing"
