"""Warms the engine up while the node has nothing to do yet."""

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
    """As in `pipeline/spark/warm_up/warm_up.py`."""

    @property
    def over(self) -> bool:
        """Whether there is to be no more of it."""

    def practise(self) -> None:
        """Run queries of every shape on made-up records."""

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Run a fragment's own query on the latest records; whether there were any."""


class WarmUpPoll:
    """Warms the engine up while the node has nothing to do yet."""

    def __init__(self, warm_up: Warming, watched: Watched) -> None:
        self._warm_up = warm_up
        self._watched = watched
        self._looks = 0
        self._done: set[tuple[FragmentId, VersionId]] = set()

    def look(self) -> float:
        """Practise at the second look: what runs on the node from the start is known by then.

        After that, rehearse what other nodes run; again when it has changed.
        """
        if self._warm_up.over:
            return WARM_PAUSE_S
        self._looks += 1
        if self._looks == 1:
            return PRACTICE_AFTER_S
        if self._looks == 2:  # noqa: PLR2004 - said above
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
