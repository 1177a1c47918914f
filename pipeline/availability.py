"""Availability of a fragment: how much later results may come before tentative ones are preferred.

The bound and the policies are those of Balazinska et al., "Fault-Tolerance in the Borealis
Distributed Stream Processing System" (SIGMOD 2005).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pipeline import durations

BOUND_LEAST_MS = 1
BOUND_MOST_MS = durations.parse("1d")


class Policy(Enum):
    """What happens when input has been missing for the whole bound; the most available is first."""

    PROCESS = "process"
    """From then on tentative results are published as soon as the input that is there allows."""
    DELAY = "delay"
    """From then on each tentative result is published after the whole bound."""
    SUSPEND = "suspend"
    """No tentative result is published: stable ones come when the input does."""


_POLICIES = tuple(Policy)


@dataclass(frozen=True, slots=True)
class Availability:
    """The availability of a fragment.

    Args:
        bound_ms: the delay, added to the usual one, that is accepted before tentative results are
            preferred to none.
        policy: what happens then.
    """

    bound_ms: int
    policy: Policy = Policy.PROCESS

    def __str__(self) -> str:
        return f"{durations.format(self.bound_ms)}, {self.policy.value}"


def tightest(those: Iterable[Availability], default: Availability | None) -> Availability | None:
    """The one with the least bound; of these that with the most available policy.

    `default`: of none at all.
    """
    return min(those, key=lambda one: (one.bound_ms, _POLICIES.index(one.policy)), default=default)
