"""Wait after a deploy: until all fragments run, and those that it started process records."""

from collections.abc import Callable, Sequence

from pipeline.clock import Clock, Deadline
from pipeline.deploy.apply import Deployed
from pipeline.errors import FragmentFailedError
from pipeline.operations.connections import Connections
from pipeline.operations.rollout.first_runs import FirstRuns, StartedFragments
from pipeline.operations.status.fragments import networks_status
from pipeline.operations.status.observed import ObservedFragment, failed, settled

_POLL_S = 0.2

Watch = Callable[[Sequence[ObservedFragment]], None]
"""Receives the fragments at each poll."""


def await_running(
    done: Deployed,
    starts: StartedFragments,
    connections: Connections,
    clock: Clock,
    timeout_s: float,
    watch: Watch,
) -> tuple[ObservedFragment, ...]:
    """Wait until every fragment of a deployed network runs, and those that start are steady.

    One that no node has room for is not waited for.

    Raises:
        RetryError: timeout; the deploy itself is done.
        FragmentFailedError: a fragment failed and is not restarted.
    """
    deadline = Deadline.after(clock, timeout_s, f"waiting for {done.name} to run")
    runs = FirstRuns(starts.names)
    while True:
        seen = networks_status(connections, (done.network,), starts.until)
        watch(seen)
        broken = failed(seen)
        if broken:
            error = broken[0].status.last_error if broken[0].status else ""
            raise FragmentFailedError(
                f"{done.name} is deployed, but {broken[0].name} failed: {error}",
                hint=f"`medusa logs {broken[0].name}` says more.",
            )
        runs = runs.after(seen, clock.monotonic_s())
        if settled(seen) and runs.steady(seen, clock.monotonic_s()):
            return seen
        no_node = not connections.catalog.nodes.names(connections.participant)
        deadline.check(
            "it is deployed, but no node is up: `medusa node start` starts one."
            if no_node
            else "it is deployed and may still come up: `medusa status`."
        )
        clock.sleep(_POLL_S)
