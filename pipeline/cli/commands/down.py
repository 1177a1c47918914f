"""`medusa down`: stop of the stack that `medusa up` started."""

import click

from brokers.embedded.control import Stopped, stop_running
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session

_MESSAGES = {
    Stopped.NOTHING_RAN: "nothing runs in {data}; a stack with other --data is ended with that",
    Stopped.ENDED: "stopped; data and progress stay",
    Stopped.KILLED: "stopped by force: it did not end in time; data and progress stay",
}


@click.command("down")
@timeout_option(60)
@with_session
def command(session: Session, timeout: float) -> None:
    """Stop the servers and the node that `up` started for this project. All data stay.

    What was started with --data is stopped with the same.

    \b
    Examples:
      medusa down
      medusa down --data /tmp/try
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    data = session.project.data
    with session.printer.waiting("stopping…"):
        ended = stop_running(data, timeout, session.clock)
    session.printer.show(
        {"data": str(data), "result": ended.value}, _MESSAGES[ended].format(data=data)
    )
