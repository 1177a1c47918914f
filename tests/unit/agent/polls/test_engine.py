import threading

import pytest

from pipeline.agent.polls.engine import EnginePoll
from pipeline.agent.polls.poll import Ending
from pipeline.errors import EnvironmentProblem, MedusaError


def test_a_node_whose_engine_has_ended_ends() -> None:
    """No lane could run in it again: the node must be restarted."""
    stop = threading.Event()
    troubles: list[MedusaError | None] = [EnvironmentProblem("the Java process has ended"), None]
    ending = Ending(stop)
    poll = EnginePoll(troubles.pop, ending)
    poll.read()
    assert not stop.is_set()
    poll.read()
    assert stop.is_set()
    with pytest.raises(EnvironmentProblem, match="Java process"):
        ending.check()
