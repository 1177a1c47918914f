"""How a follower repairs its state after a batch with another outcome than its owner's. Pure.

The decisions about records depend on the records, the watermark, the schemas and the user
functions, not on the state: if they differ, the state before the batch is that of the owner, and
the repair begins from it. If only the results differ, the state may have differed long before: the
results of other windows or keys, which have agreed, say nothing about it. So it is built from the
log, and no lane begins from it before.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pipeline.markers.commit_marker import CommitMarker

REPAIRS_MAX: Final = 3
"""After so many repairs in a row, without a batch between that agrees, a follower is discarded."""


class Repair(Enum):
    """Where a repair begins."""

    SINCE_AGREED = "from the last batch that agreed"
    FROM_LOG = "from the log"


@dataclass(frozen=True, slots=True)
class Difference:
    """How the outcome of a batch differs from its marker.

    Args:
        why: describes it.
        is_of_results: whether the decisions about its records agree, and only the results differ.
    """

    why: str
    is_of_results: bool = False


class Repairs:
    """Decides how a follower repairs its state; counts its repairs in a row."""

    def __init__(self) -> None:
        self._last: Difference | None = None
        self.in_a_row = 0
        self.is_in_doubt = False
        """Whether the state may differ from the owner's, so that no lane may begin from it."""

    def differs(self, difference: Difference) -> Repair | None:
        """The repair after a batch with another outcome; None: the follower is discarded."""
        self._last = difference
        if self.in_a_row == REPAIRS_MAX:
            self.is_in_doubt = True
            return None
        self.in_a_row += 1
        self.is_in_doubt = self.is_in_doubt or difference.is_of_results
        return Repair.FROM_LOG if self.is_in_doubt else Repair.SINCE_AGREED

    def agrees(self, marker: CommitMarker, results: int) -> None:
        """Note a batch whose outcome is that of the owner.

        It says something only if it has what differed before: records, or results.

        Args:
            marker: of the batch.
            results: how many it has written.
        """
        last, records = self._last, 0 if marker.judged is None else marker.judged.records
        if last is not None and (results if last.is_of_results else records):
            self._last, self.in_a_row = None, 0

    def built_from_log(self) -> None:
        """Note that the state was built from the log, or begins from what its owner has stored."""
        self.is_in_doubt = False
