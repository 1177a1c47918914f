"""The options of a cut in the middle of an example's run."""

import functools
from collections.abc import Callable
from typing import Any

import click

from pipeline import durations
from pipeline.errors import UsageError
from pipeline.examples.cut import Cut, CutKind

FOR = "20s"
LEAST_MS, MOST_MS = 1_000, 3_600_000


def cut_options(function: Callable[..., None]) -> Callable[..., None]:
    """Pass `cut` to the command, from `--cut` and `--for`."""

    @click.option(
        "--cut",
        "kind",
        type=click.Choice([one.value for one in CutKind]),
        envvar="DEMO_CUT",
        help="Cut an input in the middle: one partition, or all that the producer sends.",
    )
    @click.option(
        "--for", "length", metavar="TIME", help=f"How long it is cut, beside --seconds.  [{FOR}]"
    )
    @functools.wraps(function)
    def wrapper(*args: Any, kind: str | None, length: str | None, **values: Any) -> None:
        function(*args, **values, cut=_cut(kind, length))

    return wrapper


def _cut(kind: str | None, length: str | None) -> Cut | None:
    if kind is None:
        if length is not None:
            raise UsageError("--for needs --cut")
        return None
    try:
        ms = durations.parse(length or FOR)
    except ValueError as error:
        raise UsageError(f"--for: {error}") from error
    if not LEAST_MS <= ms <= MOST_MS:
        raise UsageError(f"--for is from {LEAST_MS // 1_000}s to {durations.format(MOST_MS)}")
    return Cut(CutKind(kind), ms / 1_000)
