from importlib.metadata import EntryPoint

import pytest

from connectors.catalogue import GROUP, Kind, with_others
from connectors.guarantee import Guarantee
from pipeline.errors import InputError
from tests.unit.connectors.twins import MemorySource

MEMORY = Kind(
    name="memory",
    summary="records in memory",
    guarantee=Guarantee.EXACTLY_ONCE,
    needs=("A process that does not end.",),
    source=lambda _options, _context: MemorySource({}),
)
OTHER = Kind("other", "of another package", Guarantee.AT_LEAST_ONCE, ())
NO_KIND = "memory"


def point(name: str) -> EntryPoint:
    """An entry point whose value is in this module."""
    return EntryPoint("x", f"{__name__}:{name}", GROUP)


def test_kinds_of_other_packages_are_listed_by_name() -> None:
    """Beside those of Medusa."""
    found = with_others((OTHER,), (point("MEMORY"),))
    assert list(found) == ["memory", "other"]
    assert found["memory"].direction == "source"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("NO_KIND", "no Kind of a connector"),
        ("MISSING", "cannot be loaded"),
        ("OTHER", "there is another connector other"),
    ],
)
def test_a_wrong_entry_point_is_named(value: str, says: str) -> None:
    """With what it says, so that its package is found."""
    with pytest.raises(InputError, match=says) as found:
        with_others((OTHER,), (point(value),))
    assert value in found.value.place
