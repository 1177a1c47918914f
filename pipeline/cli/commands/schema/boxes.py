"""Check that deployed boxes can read records of a schema, before it is registered."""

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.session import Session
from pipeline.deploy.readers import BreaksBoxesError, Broken, broken_by
from pipeline.errors import UnavailableError
from pipeline.operations.connections import Connections
from pipeline.operations.networks import deployed_plans
from schemas.json_value import JsonObject


def check_deployed_boxes(
    subject: str, text: str, session: Session, connections: Connections, *, ask: bool, yes: bool
) -> JsonObject:
    """Check that deployed boxes can read records of a schema; return broken ones as data.

    Not checked with --registry: the boxes that read records with schemas of another registry are
    only in the catalog of its own installation.

    Args:
        subject: of the new version.
        text: the schema.
        session: prints notes and asks for the confirmation.
        connections: its catalog contains the deployed boxes.
        ask: whether a confirmation on a terminal permits broken boxes.
        yes: whether broken boxes are permitted without a confirmation.

    Raises:
        BreaksBoxesError: there are such boxes.
        RefusedError: the answer to the confirmation is no.
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
