"""`medusa contract renew`: proposal of other terms for an active contract."""

from pathlib import Path

import click

from pipeline.cli.contracts import (
    answer_option,
    negotiating,
    read_text,
    show_signed,
    trust_option,
)
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.documents.terms_yaml import read_terms


@click.command("renew")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@answer_option
@trust_option
@with_session
def command(session: Session, file: Path, answer_within_ms: int, *, yes: bool) -> None:
    """Propose the terms in FILE for a contract that is active: a later end, another price.

    What was agreed holds until the partner has accepted, and from then on until the begin of the
    new terms, which is not in the past. Buyer and seller remain.

    \b
    Example:
      medusa contract renew load-2028.yaml
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    terms = read_terms(read_text(file), str(file))
    with session.connect() as connections:
        found = negotiating(session, connections, yes=yes).renew(terms, answer_within_ms)
        show_signed(session, connections, found, "has a proposed renewal")
