"""`medusa show`: drawing of a network document as text, Graphviz or Mermaid."""

from collections.abc import Callable, Mapping

import click

from pipeline.cli.options import document_options, with_session
from pipeline.cli.output import Format
from pipeline.cli.session import Session
from pipeline.deploy.documents import plan_document, read_document
from pipeline.errors import UsageError
from pipeline.network.drawing.dot import as_dot
from pipeline.network.drawing.mermaid import as_mermaid
from pipeline.network.drawing.picture import Picture, picture
from pipeline.network.drawing.text import LINES, PLAIN, as_text
from pipeline.network.model import Network
from pipeline.planner.picture import fragments_picture
from schemas.json_value import JsonObject

_TEXT = "text"
_LANGUAGES: Mapping[str, Callable[[Picture], str]] = {"dot": as_dot, "mermaid": as_mermaid}


@click.command("show")
@document_options
@click.option(
    "--format",
    "language",
    type=click.Choice([_TEXT, *_LANGUAGES]),
    help="How to draw: text (the default), dot for Graphviz, or mermaid for Markdown.",
)
@click.option(
    "--fragments", "cut", is_flag=True, help="Draw what runs, with a border around each fragment."
)
@with_session
def command(session: Session, file: str | None, language: str | None, *, cut: bool) -> None:
    """Draw a network document: boxes, the streams between them, and topics in brackets.

    Needs no server, unless the document takes a schema from the registry.

    \b
    Examples:
      medusa show
      medusa show network.py --fragments
      medusa show --format dot | dot -Tsvg > network.svg
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if language and session.printer.format is not Format.TABLE:
        raise UsageError(
            f"--format {language} is a drawing, and -o {session.printer.format.value} prints data",
            hint="leave one of them out.",
        )
    document = read_document(session.project.document(file), session.read_subject)
    network, owner = document.network, session.participant
    drawn = fragments_picture(plan_document(document, owner)) if cut else picture(network, owner)
    session.printer.show(
        {**_as_data(network), **(_fragments(drawn) if cut else {})},
        _drawing(session, drawn, language),
    )


def _drawing(session: Session, drawn: Picture, language: str | None) -> str:
    draw = _LANGUAGES.get(language or _TEXT)
    if draw is not None:
        return draw(drawn)
    text = as_text(drawn, LINES)
    return text if session.printer.can_draw(text) else as_text(drawn, PLAIN)


def _as_data(network: Network) -> JsonObject:
    return {
        "network": network.name,
        "streams": [{"name": s.name, "topic": s.topic} for s in network.streams],
        "boxes": [
            {"name": b.name, "kind": b.kind, "inputs": list(b.inputs)} for b in network.boxes
        ],
        "outputs": [{"stream": o.stream, "topic": o.topic} for o in network.outputs],
    }


def _fragments(drawn: Picture) -> JsonObject:
    return {
        "fragments": [
            {
                "streams": [{"name": s.name, "topic": s.topic} for s in part.inflows],
                "boxes": [
                    {"name": b.name, "kind": b.kind, "inputs": list(b.inputs)} for b in part.boxes
                ],
                "output": {"stream": part.boxes[-1].name, "topic": part.boxes[-1].topics[0]},
            }
            for part in drawn.parts
        ]
    }
