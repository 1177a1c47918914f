"""Warm-up of the engine while the node is idle."""

from collections.abc import Mapping
from typing import Final, Protocol

from pipeline.agent.watched import Watched
from pipeline.catalog.snapshot import VersionId
from pipeline.ids import FragmentId, TopicName
from pipeline.planner.plan import Fragment

PRACTICE_AFTER_S: Final = 1.0
REHEARSAL_PAUSE_S: Final = 10.0
WARM_PAUSE_S: Final = 3_600.0


class Warming(Protocol):
    """The interface of a warm-up; as in `pipeline/spark/warm_up/warm_up.py`."""

    @property
    def over(self) -> bool:
        """Whether the warm-up has ended."""

    def practise(self) -> None:
        """Run queries of every shape on made-up records."""

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Run a fragment's own query on the latest records; returns whether there were any."""


class WarmUpPoll:
    """Warms up the engine while the node is idle."""

    def __init__(self, warm_up: Warming, watched: Watched) -> None:
        self._warm_up = warm_up
        self._watched = watched
        self._calls = 0
        self._done: set[tuple[FragmentId, VersionId]] = set()

    def read(self) -> float:
        """Practise in the second call: the fragments assigned at the start are listed by then.

        After that, rehearse the fragments of other nodes; again when they have changed.
        """
        if self._warm_up.over:
            return WARM_PAUSE_S
        self._calls += 1
        if self._calls == 1:
            return PRACTICE_AFTER_S
        if self._calls == 2:  # noqa: PLR2004 - see the docstring
            self._warm_up.practise()
        self._rehearse()
        return REHEARSAL_PAUSE_S

    def _rehearse(self) -> None:
        elsewhere = {
            (deployed.id, deployed.version): (fragment, deployed.topic_ids)
            for deployed, fragment in self._watched.elsewhere
        }
        self._done &= elsewhere.keys()
        for key in sorted(elsewhere.keys() - self._done):
            if self._warm_up.rehearse(*elsewhere[key]):
                self._done.add(key)
