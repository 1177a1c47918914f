from pathlib import Path

import pytest

from brokers.embedded.file_lock import exclusive_lock
from brokers.embedded.progress import Step, silent
from pipeline.errors import RetryError


def test_a_second_holder_fails_within_the_timeout(tmp_path: Path) -> None:
    """The lock is free again as soon as the first one releases it."""
    steps: list[Step] = []
    lock = tmp_path / "lock"
    with (
        exclusive_lock(lock, "fetching jars", 5.0, silent),
        pytest.raises(RetryError, match="another process is still fetching jars"),
        exclusive_lock(lock, "fetching jars", 0.0, steps.append),
    ):
        pytest.fail("two at a time")
    assert steps == [Step("waiting for another process that is fetching jars")]
    with exclusive_lock(lock, "fetching jars", 0.0, steps.append):
        assert len(steps) == 1
