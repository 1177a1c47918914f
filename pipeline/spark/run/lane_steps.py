"""The present steps of the lanes that run on a node."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.heartbeats.steps import LaneStep, StepAge
from pipeline.ids import FragmentId


class LaneSteps:
    """The steps of the lanes that run on a node. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: dict[LaneStep, FragmentId] = {}

    @contextmanager
    def running(self, fragment: FragmentId, step: LaneStep) -> Iterator[None]:
        """A lane runs while the block does."""
        with self._lock:
            self._lanes[step] = fragment
        try:
            yield
        finally:
            with self._lock:
                del self._lanes[step]

    def ages(self) -> tuple[StepAge, ...]:
        """The present steps, the oldest first."""
        with self._lock:
            lanes = tuple(self._lanes.items())
        found = [StepAge(str(one), *step.age) for step, one in lanes]
        return tuple(sorted(found, key=lambda one: (-one.age_ms, one.fragment)))
