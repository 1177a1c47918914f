import threading

import pytest

from pipeline.agent.polls.poll import Ending
from pipeline.errors import UnavailableError


def test_a_node_that_is_stopped_ends_without_a_reason() -> None:
    """A stop is none; of several reasons the first counts."""
    stop = threading.Event()
    ending = Ending(stop)
    ending.check()
    assert not stop.is_set()
    ending.because(UnavailableError("first"))
    ending.because(UnavailableError("second"))
    with pytest.raises(UnavailableError, match="first"):
        ending.check()
