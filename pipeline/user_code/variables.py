"""Which variables of the environment a user's function may see: what Python needs, no secret."""

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
"""What the names of others that are needed begin with."""


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of an environment that a function's process gets.

    >>> needed({"PATH": "/bin", "LC_ALL": "C", "KAFKA_PASSWORD": "of Kafka"})
    {'PATH': '/bin', 'LC_ALL': 'C'}
    """
    return {
        name: value
        for name, value in environment.items()
        if name in _NEEDED or name.startswith(_KINDS)
    }
