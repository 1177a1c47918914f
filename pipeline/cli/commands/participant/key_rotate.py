"""`medusa participant key rotate`: change of the participant's key."""

import click

from pipeline.cli.contracts import new_seed, parties_of
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.documents.keys import fingerprint
from pipeline.event_log.event import EventKind


@click.command("rotate")
@click.option(
    "--revoke",
    is_flag=True,
    help="The present key is lost, or others may have it: it endorses nothing, and partners "
    "confirm the new one.",
)
@with_session
def command(session: Session, *, revoke: bool) -> None:
    """Sign with a new key from now on. The present one signs it, so that partners trust it.

    What was signed before remains valid. The old private key is removed.

    \b
    Examples:
      medusa participant key rotate
      medusa participant key rotate --revoke
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        keys = parties_of(session, connections).rotate(new_seed, revoke=revoke)
        session.log_event(connections, EventKind.KEY_CHANGED, key=keys.current.id)
    shown = fingerprint(keys.current.public)
    more = "; partners confirm it with `medusa participant trust`" if revoke else ""
    session.printer.show(
        {"participant": keys.party, "key": keys.current.id, "fingerprint": shown},
        f"{keys.party} has the key {shown}{more}",
    )
