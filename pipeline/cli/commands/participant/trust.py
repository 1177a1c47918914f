"""`medusa participant trust`: confirmation of a partner's key."""

import click

from pipeline.cli.contracts import confirming, parties_of, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.documents.keys import fingerprint
from pipeline.contracts.terms import PartyId


@click.command("trust")
@click.argument("participant")
@trust_option
@with_session
def command(session: Session, participant: str, *, yes: bool) -> None:
    """Confirm the present key of PARTICIPANT, in the place of the one remembered here.

    Needed only if the partner has revoked its key: one that it has changed otherwise is endorsed
    by the key before it. Compare the fingerprint with what the partner says.

    \b
    Example:
      medusa participant trust bob
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        parties = parties_of(session, connections)
        found = parties.trust(PartyId(participant), confirming(session, yes=yes))
    shown = fingerprint(found.current.public)
    session.printer.show(
        {"participant": participant, "key": found.current.id, "fingerprint": shown},
        f"the key of {participant} is {shown}",
    )
