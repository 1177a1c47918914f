"""Environment variables that a user's function may read: those Python needs, no secret."""

from collections.abc import Mapping
from typing import Final

_NEEDED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ"),
        *("TMPDIR", "TEMP", "TMP", "SYSTEMROOT"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"),
    }
)
_KINDS: Final = ("LC_", "PYTHON")
"""Prefixes of other variables that are needed."""


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that a function's process inherits.

    >>> needed({"PATH": "/bin", "LC_ALL": "C", "KAFKA_PASSWORD": "of Kafka"})
    {'PATH': '/bin', 'LC_ALL': 'C'}
    """
    return {
        name: value
        for name, value in environment.items()
        if name in _NEEDED or name.startswith(_KINDS)
    }
