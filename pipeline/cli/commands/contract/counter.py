"""`medusa contract counter`: answer to a proposal, with other terms."""

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


@click.command("counter")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@answer_option
@trust_option
@with_session
def command(session: Session, file: Path, answer_within_ms: int, *, yes: bool) -> None:
    """Answer a proposal of the partner, or of a renewal, with the terms in FILE.

    It takes the place of the proposal; the partner answers it. `medusa contract show NAME -o yaml`
    prints the proposed terms.

    \b
    Example:
      medusa contract counter load.yaml
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    terms = read_terms(read_text(file), str(file))
    with session.connect() as connections:
        found = negotiating(session, connections, yes=yes).counter(terms, answer_within_ms)
        show_signed(session, connections, found, "has other terms now")
