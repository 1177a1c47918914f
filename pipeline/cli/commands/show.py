"""`medusa show`: the network as text."""

import click

from pipeline.cli.options import document_option, with_session
from pipeline.cli.session import Session
from pipeline.deploy.documents import read_document
from pipeline.network.render import as_text


@click.command("show")
@document_option
@with_session
def command(session: Session, file: str | None) -> None:
    """Draw a network document as text: boxes, and topics in brackets. Needs no server.

    \b
    Examples:
      medusa show
      medusa show -f other.yaml
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    network = read_document(session.project.document(file), session.read_subject).network
    text = as_text(network)
    session.printer.show(
        {
            "network": network.name,
            "streams": [{"name": s.name, "topic": s.topic} for s in network.streams],
            "boxes": [
                {"name": b.name, "kind": b.kind, "inputs": list(b.inputs)} for b in network.boxes
            ],
            "outputs": [{"stream": o.stream, "topic": o.topic} for o in network.outputs],
        },
        text.rstrip("\n"),
    )
