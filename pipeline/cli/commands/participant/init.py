"""`medusa participant init`: creation of the participant's key."""

import click

from pipeline.cli.contracts import new_seed, parties_of
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.documents.keys import fingerprint
from pipeline.event_log.event import EventKind


@click.command("init")
@with_session
def command(session: Session) -> None:
    """Create the key with which the participant signs contracts, unless it has one.

    The private key is written into the folder of the setting `keys`, readable by you only; the
    public one into the catalog. Tell partners its fingerprint, so that they can compare it. Nodes
    that settle ledgers need the private key, too.

    \b
    Example:
      medusa participant init
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        parties = parties_of(session, connections)
        keys, changed = parties.create(new_seed)
        shown = fingerprint(keys.current.public)
        if changed:
            session.log_event(connections, EventKind.KEY_CHANGED, key=keys.current.id)
    text = "has the key" if changed else "had a key already; nothing changed:"
    session.printer.show(
        {
            "participant": keys.party,
            "changed": changed,
            "key": keys.current.id,
            "fingerprint": shown,
            "file": str(parties.folder.file(keys.party)),
        },
        f"{keys.party} {text} {shown}",
    )
