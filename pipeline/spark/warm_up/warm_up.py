"""Warm-up of a session, for fast first batches when it claims a fragment.

While it is idle, first practice: queries of every shape, on generated records. Then rehearsals of
fragments that other nodes run: if such a node fails, this one takes them over. A session that has
work rehearses only what its node is a secondary of, with few records.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException

from pipeline.errors import MedusaError
from pipeline.ids import TopicName
from pipeline.planner.plan import Fragment
from pipeline.spark.run.spark_errors import first_line

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Session(Protocol):
    """As in `idle_session.py`; `stop` ends it at the next batch."""

    def practise(self, folder: Path, stop: threading.Event) -> dict[str, int]:
        """Run queries of every shape on generated records; returns their numbers of results."""

    def rehearse(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        folder: Path,
        stop: threading.Event,
    ) -> int:
        """Run a fragment's query on the latest records; returns the number of batches."""

    def rehearse_beside(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        folder: Path,
        stop: threading.Event,
    ) -> int:
        """The same with the last few records, for a short time."""


class WarmUp:
    """Warm-up of one session; that of an idle one ends permanently when it claims a fragment.

    Args:
        session: runs practice and rehearsals.
        folder: for checkpoints; removed after each part.
    """

    def __init__(self, session: Session, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._over = threading.Event()
        self._beside = threading.Event()
        """Ends the rehearsal that runs beside lanes."""

    @property
    def over(self) -> bool:
        """Whether the warm-up has ended."""
        return self._over.is_set()

    def end(self) -> None:
        """Stop warming up after the current batch: a lane starts, or the node ends. Thread-safe."""
        self._over.set()
        self._beside.set()

    def practise(self) -> None:
        """Run queries of every shape on generated records."""
        results = self._harmless(lambda: self._session.practise(self._folder, self._over))
        if results is not None and not self.over:
            _log.info("Java has practised, results: %s", results)

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Run a fragment's query on the latest records; returns whether there were any."""
        batches = self._harmless(
            lambda: self._session.rehearse(fragment, topic_ids, self._folder, self._over)
        )
        if batches and not self.over:
            _log_rehearsed(fragment, batches)
        return bool(batches)

    def rehearse_beside(
        self, fragment: Fragment, topic_ids: Mapping[TopicName, str]
    ) -> bool | None:
        """Run a fragment's query on a few records, while lanes run; the start of one ends it.

        Returns:
            Whether there were any; None: it has failed, or was ended.
        """
        self._beside.clear()
        batches = self._alone(
            lambda: self._session.rehearse_beside(fragment, topic_ids, self._folder, self._beside)
        )
        if self._beside.is_set():
            return None
        if batches:
            _log_rehearsed(fragment, batches)
        return None if batches is None else batches > 0

    def _harmless(self, work: Callable[[], _T]) -> _T | None:
        """Run a part of it, unless it is over. Errors are only logged."""
        return None if self.over else self._alone(work)

    def _alone(self, work: Callable[[], _T]) -> _T | None:
        """Run something that uses the folder. Errors are only logged."""
        shutil.rmtree(self._folder, ignore_errors=True)  # of a node that was killed
        try:
            return work()
        # PySpark raises the last of them if the session is closed meanwhile.
        except (MedusaError, PySparkException, Py4JError, ConnectionError, AttributeError) as error:
            _log.info("the warm-up was left off: %s", first_line(error))
            return None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def _log_rehearsed(fragment: Fragment, batches: int) -> None:
    name = f"{fragment.names.network}.{fragment.name}"
    _log.info("%s was rehearsed, batches: %d", name, batches)
