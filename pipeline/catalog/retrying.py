"""Steps of the catalog that lose races against others are tried again from reading."""

from collections.abc import Callable
from typing import Final, TypeVar

from brokers.versioned_store import (
    NoSuchPathError,
    NotEmptyError,
    PathExistsError,
    VersionConflictError,
)
from pipeline.errors import RetryError

T = TypeVar("T")

ATTEMPTS_MAX: Final = 10
"""Tries of a step that loses races; each loss means that somebody else's step was done."""

LOST: Final = (PathExistsError, NoSuchPathError, VersionConflictError, NotEmptyError)
"""What a step raises that has lost one."""


def retrying(step: Callable[[], T], place: str) -> T:
    """Do a step that reads, decides and applies; if it loses a race, all of it again.

    Raises:
        RetryError: it has lost too often; `place` names what it is about.
    """
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return step()
        except LOST:
            continue  # somebody else's step was done: read again and decide again
    try:
        return step()
    except LOST as error:
        raise RetryError(
            f"others changed the catalog {ATTEMPTS_MAX} times while we tried",
            place=place,
            hint="run it again.",
        ) from error
