"""`medusa participant show`: keys of a participant."""

import click

from pipeline.cli.contracts import parties_of
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.cli.times import time_text
from pipeline.clock import rfc3339
from pipeline.contracts.documents.keys import fingerprint
from pipeline.contracts.documents.parties import PartyKey
from pipeline.contracts.terms import PartyId
from schemas.json_value import JsonObject

_COLUMNS = ("key", "fingerprint", "from", "until", "remark")


@click.command("show")
@click.argument("participant", required=False)
@with_session
def command(session: Session, participant: str | None) -> None:
    """Show the public keys of PARTICIPANT, or of yourself, and whether they are confirmed here.

    \b
    Examples:
      medusa participant show
      medusa participant show bob
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    party = PartyId(participant or session.participant)
    with session.connect() as connections:
        parties = parties_of(session, connections)
        found = parties.catalog.keys.get(party)
        known = parties.folder.known().get(party)
    keys = found.keys if found else ()
    rows: list[JsonObject] = [
        {
            "key": one.id,
            "public": one.public,
            "fingerprint": fingerprint(one.public),
            "from": rfc3339(one.from_ms),
            "until": time_text(one.until_ms),
            "revoked": one.is_revoked,
            "confirmed": one.public == known,
        }
        for one in keys
    ]
    table = Table(
        _COLUMNS,
        tuple(
            (*(str(row[name] or "") for name in _COLUMNS[:-1]), _remark(one, one.public == known))
            for row, one in zip(rows, keys, strict=True)
        ),
        f"participant {party} has no key",
    )
    session.printer.show({"participant": party, "keys": rows}, table)


def _remark(key: PartyKey, confirmed: bool) -> str:
    if key.is_revoked:
        return "revoked"
    return "confirmed" if confirmed else ""
