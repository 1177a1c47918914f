"""How far a follower is behind its owner: from commit markers and the follower's checkpoint.

The lag of a batch is the time from its commit marker until Spark has committed it in the
follower's checkpoint, both by the clock of one machine. `medusa status` tells it of a follower that
is not level alone.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

Ends = Mapping[int, int]
"""Partition → next offset to read, of one topic."""
OFFSETS = "offsets"
SAMPLE_S = 0.25
"""Spark keeps the last twenty batches."""


@dataclass(frozen=True, slots=True)
class Reached:
    """When a batch that ends there was committed, in ms since 1970."""

    at_ms: float
    ends: Ends

    def contains(self, ends: Ends) -> bool:
        """Whether it is at these positions, or beyond."""
        return all(self.ends.get(partition, 0) >= end for partition, end in ends.items())


def newest_checkpoint(root: Path) -> Path | None:
    """The checkpoint below a folder in which a batch was planned last; None: there is none."""
    found: list[tuple[int, Path]] = []
    for path, folders, _ in os.walk(root):
        if OFFSETS in folders:
            with suppress(OSError):  # removed meanwhile
                found.append(((Path(path) / OFFSETS).stat().st_mtime_ns, Path(path)))
    return max(found, default=(0, None))[1]


def offsets_of(text: str, topic: str) -> Ends:
    r"""The ends of a topic in a file of Spark's `offsets`: a version, settings, one line a source.

    >>> offsets_of('v1\n{"conf": {}}\n{"in": {"0": 7, "1": 8}}\n-\n', "in")
    {0: 7, 1: 8}
    """
    ends: dict[int, int] = {}
    for line in text.splitlines()[2:]:
        source = json.loads(line) if line.startswith("{") else {}
        ends |= {int(number): int(end) for number, end in source.get(topic, {}).items()}
    return ends


@dataclass(slots=True)
class Commits:
    """The batches that were committed in a checkpoint, as far as they were seen.

    Args:
        checkpoint: the folder.
        topic: of the input.
        found: batch → when it was committed, and where it ends.
    """

    checkpoint: Path
    topic: str
    found: dict[str, Reached] = field(default_factory=dict)

    def sample(self) -> None:
        """Note the batches that are there now."""
        for commit in (self.checkpoint / "commits").glob("[0-9]*"):
            if commit.name in self.found or not commit.name.isdecimal():
                continue
            with suppress(OSError):  # removed meanwhile
                at_ms = commit.stat().st_mtime_ns / 1e6
                text = (self.checkpoint / OFFSETS / commit.name).read_text(encoding="utf-8")
                self.found[commit.name] = Reached(at_ms, offsets_of(text, self.topic))

    def sample_for(self, seconds: float) -> None:
        """Note what is committed for so long."""
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            self.sample()
            time.sleep(SAMPLE_S)


def lags_ms(written: Sequence[Reached], repeated: Sequence[Reached]) -> list[float]:
    """How long after the owner a follower has had each batch, in ms.

    Args:
        written: the owner's batches.
        repeated: the follower's; one may contain several of the owner's.
    """
    in_order = sorted(repeated, key=lambda one: one.at_ms)
    found = []
    for batch in written:
        first = next((one for one in in_order if one.contains(batch.ends)), None)
        if first is not None:
            found.append(first.at_ms - batch.at_ms)
    return found
