"""What a new schema would do to the boxes that are deployed, told before it is registered."""

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.session import Session
from pipeline.deploy.readers import BreaksBoxesError, Broken, broken_by
from pipeline.errors import UnavailableError
from pipeline.operations.connections import Connections
from pipeline.operations.networks import deployed_plans
from schemas.json_value import JsonObject


def require_readers(
    subject: str, text: str, session: Session, connections: Connections, *, ask: bool, yes: bool
) -> JsonObject:
    """Look for boxes that could not read records of a schema; what was found, as data.

    Nobody looks for a registry that was named by its address: which boxes read what is written with
    its schemas, only the catalog of its own installation knows.

    Args:
        subject: where it is to be registered.
        text: the schema.
        session: asks and tells.
        connections: the catalog knows the boxes.
        ask: whether a person on a terminal may say that it shall be.
        yes: whether it shall be, whatever breaks.

    Raises:
        BreaksBoxesError: there are such boxes.
        RefusedError: a person was asked and said no.
    """
    if session.elsewhere:
        return {"boxes_checked": False, "breaks": []}
    try:
        broken = broken_by(subject, text, deployed_plans(connections.catalog))
    except UnavailableError as error:
        session.printer.note(f"deployed boxes were not checked: {error}")
        return {"boxes_checked": False, "breaks": []}
    if broken:
        found = BreaksBoxesError(subject, broken)
        if not yes and not (ask and session.printer.can_ask):
            raise found
        session.printer.note(f"{found.place}: {found.message}")
        if not yes:
            confirm(session, "register it all the same?")
    return {"boxes_checked": True, "breaks": [_data(one) for one in broken]}


def _data(broken: Broken) -> JsonObject:
    return {
        "participant": broken.network.participant,
        "network": broken.network.name,
        "fragment": broken.fragment,
        "box": broken.box,
        "stream": broken.stream,
        "reason": broken.reason,
    }
