"""`medusa contract propose`: proposal of a new contract."""

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


@click.command("propose")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@answer_option
@trust_option
@with_session
def command(session: Session, file: Path, answer_within_ms: int, *, yes: bool) -> None:
    """Propose the terms in FILE, a YAML document, to the other participant named in it.

    You sign the terms; they hold once the partner has signed the same ones with `medusa contract
    accept`. Until then either of you can withdraw, and the partner can answer with other terms.

    \b
    Example:
      medusa contract propose load.yaml
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    terms = read_terms(read_text(file), str(file))
    with session.connect() as connections:
        found = negotiating(session, connections, yes=yes).propose(terms, answer_within_ms)
        show_signed(session, connections, found, "is proposed")
