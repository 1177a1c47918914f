"""Writing into a topic that a network writes: only after a confirmation."""

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.session import Session
from pipeline.ids import TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.streams import writers_of


def confirm_derived(topic: TopicName, session: Session, connections: Connections) -> None:
    """Require a confirmation to send to a topic that a fragment writes.

    Raises:
        RefusedError: the answer is no, or there is no terminal.
    """
    writers = writers_of(topic, connections)
    if not writers:
        return
    session.printer.note(
        f"topic {topic} is written by {', '.join(writers)}: fragments that read it make dead "
        "letters of what is sent here, with the reason foreign; all other readers take it for "
        "results"
    )
    confirm(session, "send it all the same?")
