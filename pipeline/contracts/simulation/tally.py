"""Tally of a run: moves, stays that ended, and tasks that went to and fro."""

from typing import Final

from pipeline.contracts.decisions import Decision, What
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.ids import Millis

CHANGE_MS: Final = 15_000
"""Time between two changes of loads."""
_ENDS: Final = frozenset({What.RETURNED, What.RECALLED})


class Tally:
    """Counts of what participants have decided.

    `moves` counts moves of any number of tasks, `ended` decisions to end stays, and `repeated` the
    tasks that were sent to the partner from whom they had come back since loads changed last: that
    would be an oscillation. `moved_ms` is when the last move was.
    """

    def __init__(self) -> None:
        self.moves = self.ended = self.repeated = 0
        self.moved_ms = Millis(0)
        self._back: dict[tuple[TaskId, frozenset[PartyId]], int] = {}

    def note(self, decision: Decision) -> None:
        """Count a decision."""
        if decision.what is What.SENT:
            self.moves += 1
            self.moved_ms = decision.at_ms
            if self._back:
                self.repeated += sum(
                    self._back.get(key) == decision.at_ms // CHANGE_MS for key in _keys(decision)
                )
        elif decision.what in _ENDS:
            self.ended += 1
            self._back.update(dict.fromkeys(_keys(decision), decision.at_ms // CHANGE_MS))


def _keys(decision: Decision) -> list[tuple[TaskId, frozenset[PartyId]]]:
    pair = frozenset((decision.me, decision.partner))
    return [(task, pair) for task in decision.lot.tasks]
