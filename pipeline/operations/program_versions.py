"""Order of the versions of Medusa, as nodes report them. Pure."""

import re
from typing import Final

_RELEASE: Final = re.compile(r"(\d+(?:\.\d+)*)(.*)", re.ASCII | re.DOTALL)


def is_earlier(one: str, other: str) -> bool:
    """Whether a version comes before another one.

    The numbers decide, and a release comes after its preliminary versions. Two of these, and text
    that is no version, have no order.

    >>> is_earlier("0.9", "0.10.1"), is_earlier("1.0", "1.0.0"), is_earlier("1.0", "1.0.1")
    (True, False, True)
    >>> is_earlier("1.0rc1", "1.0"), is_earlier("1.0", "1.0rc1"), is_earlier("here", "1.0")
    (True, False, False)
    """
    first, second = _RELEASE.fullmatch(one), _RELEASE.fullmatch(other)
    if first is None or second is None:
        return False
    before, after = _numbers(first[1]), _numbers(second[1])
    if before != after:
        return before < after
    return _is_preliminary(first[2]) and not _is_preliminary(second[2])


def _numbers(release: str) -> tuple[int, ...]:
    """The numbers of a release, without zeros at the end."""
    found = [int(number) for number in release.split(".")]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _is_preliminary(suffix: str) -> bool:
    """Whether a suffix is that of an alpha, beta or development version, or of a candidate."""
    return suffix.lstrip(".-_").startswith(("a", "b", "rc", "dev"))
