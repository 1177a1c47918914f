"""A query of a rebuild that lasts: after its last planned batch it waits for those of its lane.

A new query costs seconds on a busy machine: it is planned, its state is loaded, its first batch is
compiled. So the lane goes on in the query that has read what was missing.
"""

import threading
from collections.abc import Callable
from typing import Final

from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, RetryError
from pipeline.spark.run.query_runner import Query, RunningQuery, StoppingError
from pipeline.spark.run.steered_query import Answer, Plan

TAKEN_OVER_S: Final = 60.0
"""How long the query waits to be taken over: for the first marker of its lane."""
ENDED_S: Final = 60.0
_POLL_S: Final = 0.05

Begin = Callable[[Query, threading.Event], RunningQuery]


class LastingQuery:
    """Runs one query in a thread of its own until a lane takes it over. Single use.

    Args:
        plan: plans the batches before; None: all were executed.
        clock: for deadlines.
        stop: set when the lane is to stop.
        begin: makes the query that runs.
    """

    def __init__(
        self, plan: Plan, clock: Clock, stop: threading.Event, begin: Begin = RunningQuery
    ) -> None:
        self._plan, self._clock, self._stop, self._begin = plan, clock, stop, begin
        self._reached, self._released = threading.Event(), threading.Event()
        self._failure: MedusaError | StoppingError | None = None
        self._thread: threading.Thread | None = None
        self._query: RunningQuery | None = None

    @property
    def query(self) -> RunningQuery:
        """To be taken over.

        Raises:
            RetryError: it has ended.
        """
        if self._query is None:
            raise RetryError("the query has ended before it was taken over")
        return self._query

    @property
    def has_waited(self) -> bool:
        """Whether it has executed its last planned batch."""
        return self._reached.is_set()

    def answer(self) -> Answer | None:
        """The next batch; after the last one, wait for the lane. None: the query ends."""
        found = self._plan()
        if found is not None:
            return found
        self._reached.set()
        what = "waiting for the lane that takes the query over"
        deadline, query = Deadline.after(self._clock, TAKEN_OVER_S, what), self.query
        while not (self._stop.is_set() or self._released.is_set() or deadline.passed):
            if query.taken_over.wait(_POLL_S):
                return None
        query.refuse_takeover()
        return None

    def release(self) -> None:
        """Let the query end, unless it was taken over."""
        self._released.set()

    def run(self, query: Query) -> None:
        """Run a query, steered by `answer`, up to its last planned batch.

        Raises:
            StoppingError: it was stopped.
            MedusaError: a batch or the query has failed; it has ended.
        """
        self._query = self._begin(query, self._stop)
        self._thread = threading.Thread(target=self._work, name=query.name, daemon=True)
        self._thread.start()
        while self._thread.is_alive() and not self._reached.is_set():
            self._reached.wait(_POLL_S)
        if not self._reached.is_set():
            if not self.end():
                raise RetryError("the query of a rebuild does not end")
            raise self._failure or RetryError("the query ended by itself")

    def end(self) -> bool:
        """End the query, unless it was taken over, and wait for that; False: it does not end."""
        self.release()
        thread, self._thread, self._query = self._thread, None, None
        if thread is None:
            return True
        thread.join(ENDED_S)
        return not thread.is_alive()

    def _work(self) -> None:
        try:
            self.query.run()
        except (MedusaError, StoppingError) as error:
            self._failure = error
