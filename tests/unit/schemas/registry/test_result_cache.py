from schemas.registry.result_cache import ResultCache


def test_the_least_recently_used_is_evicted() -> None:
    """Above the maximum weight."""
    memory: ResultCache[int, str] = ResultCache(100)
    memory.put(0, "first", 10)
    for number in range(1, 50):
        memory.put(number, "other", 10)
        assert memory.get(0) == "first"
    assert memory.get(1) is None
    assert memory.get(49) == "other"
    assert sum(memory.get(number) is not None for number in range(50)) <= 10


def test_an_entry_above_the_maximum_weight_is_kept_alone() -> None:
    """It evicts everything else, and is evicted by the next one but one."""
    memory: ResultCache[str, str] = ResultCache(10)
    memory.put("large", "x", 1_000)
    assert memory.get("large") == "x"
    memory.put("a", "y", 5)
    memory.put("b", "z", 5)
    assert memory.get("large") is None
    assert memory.get("b") == "z"
