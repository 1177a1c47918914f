"""Retries of catalog steps that lose a compare-and-set; each repeats the step's reads."""

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
"""Maximum attempts of a step; each failed one means that a concurrent step succeeded."""

LOST: Final = (PathExistsError, NoSuchPathError, VersionConflictError, NotEmptyError)
"""Errors of a step that has lost a compare-and-set."""


def retrying(step: Callable[[], T], place: str) -> T:
    """Run a step that reads, decides and applies; retries all of it after a lost compare-and-set.

    Raises:
        RetryError: it has lost too often; `place` names the subject of the step.
    """
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return step()
        except LOST:
            continue  # a concurrent step succeeded: read and decide again
    try:
        return step()
    except LOST as error:
        raise RetryError(
            f"others changed the catalog {ATTEMPTS_MAX} times while we tried",
            place=place,
            hint="run it again.",
        ) from error
