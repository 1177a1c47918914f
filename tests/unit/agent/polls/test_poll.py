import threading

import pytest

from pipeline.agent.polls.poll import Ending
from pipeline.errors import UnavailableError


def test_a_node_that_ends_for_no_reason_of_its_own_tells_none() -> None:
    """Being stopped is none; of several reasons the first counts."""
    stop = threading.Event()
    ending = Ending(stop)
    ending.check()
    assert not stop.is_set()
    ending.because(UnavailableError("first"))
    ending.because(UnavailableError("second"))
    with pytest.raises(UnavailableError, match="first"):
        ending.check()
