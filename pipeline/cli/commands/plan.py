"""`medusa plan`: changes that a deploy would make."""

import click
from rich.text import Text

from pipeline.cli.colour import marked
from pipeline.cli.options import choice_options, document_options, with_session
from pipeline.cli.session import Session
from pipeline.deploy.apply import compare
from pipeline.deploy.documents import read_document
from pipeline.errors import ExitCode
from pipeline.planner.changes import Changes
from pipeline.planner.explain import explain
from pipeline.planner.render import changes_as_data, render_changes
from pipeline.planner.state import Choices

_OWN_VERSION = "format_version"
"""Omitted: the printer adds the version of every document."""


@click.command("plan")
@document_options
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit with 2 when a deploy would change something, 0 when nothing.",
)
@choice_options
@click.option("--explain", "explained", is_flag=True, help="First print how the network would run.")
@with_session
def command(
    session: Session,
    file: str | None,
    choices: Choices,
    *,
    detailed_exitcode: bool,
    explained: bool,
) -> None:
    """Print what a deploy would create, change, restart or remove, and why. Changes nothing.

    \b
    Examples:
      medusa plan
      medusa plan --detailed-exitcode -o json    # for CI
      medusa plan other.yaml --explain
      medusa plan --state rebuild
      medusa plan --input orders=end
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    document = read_document(session.project.document(file), session.read_subject)
    with session.connect() as connections:
        owner = session.participant
        found = compare(document, owner, connections.servers, choices)
    found.check()
    show_changes(session, found.changes, explain(found.plan) if explained else "")
    if detailed_exitcode and found.changes.pending:
        raise click.exceptions.Exit(ExitCode.CHANGES_PENDING)


def show_changes(session: Session, changes: Changes, before: str = "") -> None:
    """Print changes; the text form begins with `before`."""
    text = render_changes(changes).rstrip("\n")
    data = {name: part for name, part in changes_as_data(changes).items() if name != _OWN_VERSION}
    shown = marked(text)
    session.printer.show(data, Text(f"{before}\n").append_text(shown) if before else shown)
