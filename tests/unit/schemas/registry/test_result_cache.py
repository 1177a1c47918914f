from schemas.registry.result_cache import ResultCache


def test_what_was_used_last_is_remembered() -> None:
    """Up to the weight; what nobody asked for since long is forgotten first."""
    memory: ResultCache[int, str] = ResultCache(100)
    memory.put(0, "first", 10)
    for number in range(1, 50):
        memory.put(number, "other", 10)
        assert memory.get(0) == "first"
    assert memory.get(1) is None
    assert memory.get(49) == "other"
    assert sum(memory.get(number) is not None for number in range(50)) <= 10


def test_what_weighs_more_than_all_may_is_remembered_alone() -> None:
    """It takes the place of everything else, and goes with the next one but one."""
    memory: ResultCache[str, str] = ResultCache(10)
    memory.put("large", "x", 1_000)
    assert memory.get("large") == "x"
    memory.put("a", "y", 5)
    memory.put("b", "z", 5)
    assert memory.get("large") is None
    assert memory.get("b") == "z"
