"""Results of costly pure functions, as many as memory allows. Pure: forgetting changes nothing."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Remembers what was used last, up to a weight. None is never a result.

    There are two generations. What is used is put into the younger one; when that is full, it
    becomes the elder, and the elder is forgotten. No lock is needed: threads that come at the same
    time can at worst make each other compute something again.

    Args:
        weight_max: how much all results may weigh together.
    """

    def __init__(self, weight_max: int) -> None:
        self._half = weight_max // 2
        self._weight = 0
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """A result, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return None
            self.put(key, *found)
        return found[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Remember a result."""
        if self._weight + weight > self._half:
            self._young, self._old, self._weight = {}, self._young, 0
        self._young[key] = (value, weight)
        self._weight += weight
