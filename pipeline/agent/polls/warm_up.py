"""Warm-up of the engine: of an idle node, and of a secondary for what it stands by for."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from pipeline.agent.watched import Watched
from pipeline.catalog.snapshot import Deployed, VersionId
from pipeline.ids import FragmentId, TopicName
from pipeline.planner.plan import Fragment

PRACTICE_AFTER_S: Final = 1.0
REHEARSAL_PAUSE_S: Final = 10.0
"""Also the least time between two rehearsals of a node that has work."""
TRIES_MAX: Final = 3
"""How often a node that has work begins a rehearsal that fails."""

_Key = tuple[FragmentId, VersionId]


class Warming(Protocol):
    """The interface of a warm-up; as in `pipeline/spark/warm_up/warm_up.py`."""

    @property
    def over(self) -> bool:
        """Whether the warm-up has ended."""

    def practise(self) -> None:
        """Run queries of every shape on made-up records."""

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Run a fragment's own query on the latest records; returns whether there were any."""

    def rehearse_beside(
        self, fragment: Fragment, topic_ids: Mapping[TopicName, str]
    ) -> bool | None:
        """The same on a node that has work, with few records; None: it has failed."""


class WarmUpPoll:
    """Warms up the engine while the node is idle, and then for what it is a secondary of."""

    def __init__(self, warm_up: Warming, watched: Watched) -> None:
        self._warm_up = warm_up
        self._watched = watched
        self._calls = 0
        self._done: set[_Key] = set()
        self._failures: dict[_Key, int] = {}

    def read(self) -> float:
        """Practise in the second call: the fragments assigned at the start are listed by then.

        After that, rehearse the fragments of other nodes; again when they have changed.
        """
        self._calls += 1
        if self._calls == 1 and not self._warm_up.over:
            return PRACTICE_AFTER_S
        if self._calls == 2 and not self._warm_up.over:  # noqa: PLR2004 - see the docstring
            self._warm_up.practise()
        self._rehearse()
        self._watched.rehearsed = frozenset(
            deployed.id for deployed, _ in self._watched.rehearsals.standbys if self._has(deployed)
        )
        return REHEARSAL_PAUSE_S

    def _rehearse(self) -> None:
        wanted = self._watched.rehearsals
        elsewhere, standbys = _by_key(wanted.fragments), _by_key(wanted.standbys)
        self._done &= elsewhere.keys() | standbys.keys()
        self._failures = {key: n for key, n in self._failures.items() if key in standbys}
        for key in sorted(elsewhere.keys() - self._done):
            if not self._warm_up.over and self._warm_up.rehearse(*elsewhere[key]):
                self._done.add(key)
        if self._warm_up.over and wanted.is_free:
            self._rehearse_beside(standbys)

    def _rehearse_beside(self, standbys: "_Rehearsals") -> None:
        """Rehearse one of these, the first that has records: the lanes of the node go first."""
        for key in sorted(standbys.keys() - self._done):
            if self._failures.get(key, 0) >= TRIES_MAX:
                continue
            had_records = self._warm_up.rehearse_beside(*standbys[key])
            if had_records:
                self._done.add(key)
            elif had_records is None:
                self._failures[key] = self._failures.get(key, 0) + 1
            if had_records is not False:
                return

    def _has(self, deployed: Deployed) -> bool:
        return (deployed.id, deployed.version) in self._done


_Rehearsals = Mapping[_Key, tuple[Fragment, Mapping[TopicName, str]]]


def _by_key(those: Iterable[tuple[Deployed, Fragment]]) -> _Rehearsals:
    return {
        (deployed.id, deployed.version): (fragment, deployed.topic_ids)
        for deployed, fragment in those
    }
