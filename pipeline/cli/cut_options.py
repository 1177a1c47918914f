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
BROKER_MOST_MS = 45_000
"""Less than the time after which clients give up a request, 60 s."""


def cut_options(function: Callable[..., None]) -> Callable[..., None]:
    """Pass `cut` to the command, from `--cut` and `--for`."""

    @click.option(
        "--cut",
        "kind",
        type=click.Choice([one.value for one in CutKind]),
        envvar="DEMO_CUT",
        help="Cut in the middle: a partition, all that the producer sends, or the broker.",
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
    cut = Cut(CutKind(kind), ms / 1_000)
    most_ms = BROKER_MOST_MS if cut.kind is CutKind.BROKER else MOST_MS
    if not LEAST_MS <= ms <= most_ms:
        least, most = durations.format(LEAST_MS), durations.format(most_ms)
        raise UsageError(f"--for is from {least} to {most} with --cut {kind}")
    return cut
