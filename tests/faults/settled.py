"""Waits until the tentative results of a network are settled."""

import time
from contextlib import suppress

from brokers.kafka_interface import Isolation
from tests.faults.judge import History, check_settled
from tests.faults.observe import read_all, read_logs
from tests.faults.reads import Reads
from tests.faults.topics import topics_of
from tests.faults.world import RunFailedError, Running, World

SETTLED_WITHIN_S = 90.0
_POLL_S = 1.0


def await_settled(world: World, running: Running) -> None:
    """Wait until nothing tentative is left; what is in the end, the checks of the run report."""
    found = (topics_of(fragment) for fragment in running.plan.fragments)
    fragments = tuple(one for one in found if one.tentative is not None)
    if not fragments:
        return
    topics = tuple(sorted({topic for one in fragments for topic in one.all}))

    def settled() -> bool:
        world.supervise()
        time.sleep(_POLL_S)
        logs = read_logs(world.servers.kafka_logs, topics)
        bootstrap = world.stack.kafka_bootstrap_servers
        committed = read_all(world.admin, bootstrap, topics, Isolation.COMMITTED)
        return not check_settled(History((), fragments, Reads(logs, committed, (), ())))

    with suppress(RunFailedError):
        what = f"tentative results of {running.network} are settled"
        world.wait(settled, what, SETTLED_WITHIN_S)
