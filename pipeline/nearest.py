"""Which names somebody may have meant who wrote one that does not exist. Pure."""

import difflib
from collections.abc import Sequence


def near(name: str, names: Sequence[str], *, most: int = 3, alike: float = 0.6) -> tuple[str, ...]:
    """The names that look like `name`, the most alike first; case makes no difference.

    Args:
        name: what was written.
        names: what exists.
        most: how many at most.
        alike: from 0 (anything) to 1 (the same).

    >>> near("car_sighting", ("cars", "car-sightings", "prices"), alike=0.8)
    ('car-sightings',)
    """
    lower = [one.lower() for one in names]
    close = difflib.get_close_matches(name.lower(), lower, n=most, cutoff=alike)
    return tuple(dict.fromkeys(one for like in close for one in names if one.lower() == like))


def nearest_first(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """All names, those that look like `name` first, the rest in their order."""
    return tuple(dict.fromkeys([*near(name, names), *names]))
