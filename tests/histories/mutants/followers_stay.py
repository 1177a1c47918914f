"""A node goes on following a fragment that it is no secondary of any more."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pipeline.agent.rules import following
from tests.histories.replaced import replaced

KINDS = "reliability,take_over"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """What is no longer to be followed is followed as before."""
    followings = following._followings

    def with_former(shared: Any) -> Iterator[Any]:
        now = list(followings(shared))
        known = {one.deployed.id for one in now}
        former = (one for one in shared.followed if one.is_standby)
        yield from now
        yield from (replace(one, is_begun=False) for one in former if one.deployed.id not in known)

    with replaced(following, "_followings", with_former):
        yield
