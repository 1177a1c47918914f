"""Warm-up of an idle session, for fast first batches when it claims a fragment.

First practice: queries of every shape, on generated records. Then rehearsals of fragments that
other nodes run: if such a node fails, this one takes them over.
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


class WarmUp:
    """Warm-up of one session; ends permanently when it claims a fragment.

    Args:
        session: runs practice and rehearsals.
        folder: for checkpoints; removed after each part.
    """

    def __init__(self, session: Session, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._over = threading.Event()

    @property
    def over(self) -> bool:
        """Whether the warm-up has ended."""
        return self._over.is_set()

    def end(self) -> None:
        """Stop warming up after the current batch. Thread-safe."""
        self._over.set()

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
            _log.info(
                "%s.%s was rehearsed, batches: %d", fragment.names.network, fragment.name, batches
            )
        return bool(batches)

    def _harmless(self, work: Callable[[], _T]) -> _T | None:
        """Run a part of it, unless it is over. Errors are only logged."""
        if self.over:
            return None
        shutil.rmtree(self._folder, ignore_errors=True)  # of a node that was killed
        try:
            return work()
        # PySpark raises the last of them if the session is closed meanwhile.
        except (MedusaError, PySparkException, Py4JError, ConnectionError, AttributeError) as error:
            _log.info("the warm-up was left off: %s", first_line(error))
            return None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
