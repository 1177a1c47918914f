"""Hypothesis profiles: numbers of random examples of property tests.

`ci` draws few, and with the fixed seed of `make test` always the same; `deep` draws many, with
another seed in each run. Examples have no time limit, since the machine runs other work meanwhile.
"""

from typing import Final

from hypothesis import HealthCheck, settings

CI: Final = "ci"
DEEP: Final = "deep"
_EXAMPLES: Final = 100
"""Default number of examples of a test."""
_CI_SHARE: Final = 4
_CI_LEAST: Final = 10
_DEEP_TIMES: Final = 10


def register() -> None:
    """Register both profiles, with `ci` as the default."""
    for profile, count in ((CI, _EXAMPLES // _CI_SHARE), (DEEP, _EXAMPLES * _DEEP_TIMES)):
        settings.register_profile(
            profile,
            max_examples=count,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile(CI)


def examples(count: int) -> int:
    """Examples of a test with a base number `count`: fewer in `ci`, more in `deep`."""
    if settings.get_current_profile_name() == DEEP:
        return count * _DEEP_TIMES
    return min(count, max(count // _CI_SHARE, _CI_LEAST))
