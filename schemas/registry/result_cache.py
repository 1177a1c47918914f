"""Cache of results of costly pure functions, bounded by weight. Pure: evictions are not visible."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ResultCache(Generic[K, V]):
    """Approximate LRU cache with a weight limit. Results are never None.

    It has two generations. Used entries move to the young one; when that is full, it becomes the
    old one, and the previous old one is dropped. No lock is needed: in the worst case concurrent
    threads compute a result again.

    Args:
        weight_max: limit of the total weight.
    """

    def __init__(self, weight_max: int) -> None:
        self._half = weight_max // 2
        self._weight = 0
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """The result of a key, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return None
            self.put(key, *found)
        return found[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Store a result."""
        if self._weight + weight > self._half:
            self._young, self._old, self._weight = {}, self._young, 0
        self._young[key] = (value, weight)
        self._weight += weight
