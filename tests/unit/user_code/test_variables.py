"""Environment variables of a function's process."""

from pipeline.settings import SETTINGS
from pipeline.user_code.variables import needed


def test_variables_of_python_are_passed() -> None:
    """Paths of programs, modules and files, and text encoding."""
    expected = {
        "PATH": "/bin",
        "HOME": "/me",
        "LC_CTYPE": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": "/tmp/mine",  # noqa: S108 - nothing is written there
        "PYTHONPATH": "/here",
        "VIRTUAL_ENV": "/env",
    }
    assert needed(expected) == expected


def test_other_variables_are_not_passed() -> None:
    """Neither our settings, nor any others."""
    ours = {setting.environment: "x" for setting in SETTINGS}
    assert needed({**ours, "AWS_SECRET_ACCESS_KEY": "x", "OF_ZOOKEEPER": "x"}) == {}
