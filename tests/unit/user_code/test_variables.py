"""Which variables a function sees."""

from pipeline.settings import SETTINGS
from pipeline.user_code.variables import needed


def test_what_python_needs_is_there() -> None:
    """Where programs, modules and files are, and how text is written."""
    wanted = {
        "PATH": "/bin",
        "HOME": "/me",
        "LC_CTYPE": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": "/tmp/mine",  # noqa: S108 - nothing is written there
        "PYTHONPATH": "/here",
        "VIRTUAL_ENV": "/env",
    }
    assert needed(wanted) == wanted


def test_no_setting_of_ours_is_handed_over() -> None:
    """Nor what others keep in an environment."""
    ours = {setting.environment: "x" for setting in SETTINGS}
    assert needed({**ours, "AWS_SECRET_ACCESS_KEY": "x", "OF_ZOOKEEPER": "x"}) == {}
