"""Stateful boxes after a union of two halves of each stream."""

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.faults.case import Case


def behind_unions(case: Case) -> Case:
    """A case in which every box reads the union of two halves of its stream.

    Each record takes one of the two paths, so the reference is unchanged.
    """
    streams, boxes = case.document.split("boxes:\n")
    names = [stream.name for stream in case.streams]
    halved = re.sub(rf"\b({'|'.join(names)})\b", r"all_\1", boxes)
    unions = "".join(line for name in names for line in _union(name))
    return replace(
        case, name=f"{case.name}_of_union", document=f"{streams}boxes:\n{unions}{halved}"
    )


def _union(stream: str) -> Iterator[str]:
    yield f"  odd_{stream}: {{filter: {stream}, where: value % 2 = 1}}\n"
    yield f"  even_{stream}: {{filter: {stream}, where: value % 2 = 0}}\n"
    yield f"  all_{stream}: {{union: [odd_{stream}, even_{stream}]}}\n"
