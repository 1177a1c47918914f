"""`medusa connect show`: what a connector would do, and the schema of a source."""

import json
from pathlib import Path

import click

from connectors.kinds import kinds
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.errors import UsageError
from pipeline.operations.connectors import Described, Sample, describe, sample
from schemas.json_value import Encodable, JsonObject

_SHOWN = 3


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--schema", "only_schema", is_flag=True, help="Print the schema alone.")
@with_session
def command(session: Session, file: Path, *, only_schema: bool) -> None:
    """Show what the connector of FILE is, and the first records of a source.

    Nothing is written, and Kafka is not needed. If the document of a source names no schema, one
    is inferred from up to 1,000 records of each of its first files.

    \b
    Examples:
      medusa connect show incoming.yaml
      medusa connect show incoming.yaml --schema > schemas/sighting.avsc
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    described = describe(file, kinds())
    if not described.document.source:
        if only_schema:
            raise UsageError("a sink has the schema of its topic", hint="leave --schema out.")
        session.printer.show(_facts(described), _words(described))
        return
    found = sample(described, session.clock)
    schema = described.schema_json or json.dumps(found.schema, indent=2)
    if only_schema:
        session.printer.line(schema)
        return
    data: dict[str, Encodable] = {
        **_facts(described),
        "schema": json.loads(schema),
        "inferred": described.schema_json is None,
        "records": [json.loads(_as_json(one.fields)) for one in found.rows[:_SHOWN]],
        "refused": [_refused(one.place, one.reason, one.message) for one in found.refused],
    }
    session.printer.show(data, f"{_words(described)}\n{_sampled(found, schema, described)}")


def _facts(described: Described) -> dict[str, Encodable]:
    document, kind = described.document, described.kind
    return {
        "connector": document.name,
        "kind": kind.name,
        "direction": "source" if document.source else "sink",
        "topic": document.topic,
        "guarantee": kind.guarantee.value,
        "needs": list(kind.needs),
    }


def _words(described: Described) -> str:
    document, kind = described.document, described.kind
    way = f"{kind.name} → topic {document.topic}"
    if not document.source:
        way = f"topic {document.topic} → {kind.name}"
    lines = [f"{document.name}: {way}, {kind.guarantee.value}", *(f"  {n}" for n in kind.needs)]
    return "\n".join(lines)


def _sampled(found: Sample, schema: str, described: Described) -> str:
    origin = f"schema, inferred from {counted(len(found.rows), 'record')}; save it, and check it:"
    if described.schema_json is not None:
        origin = "schema:"
    lines = [origin, *schema.splitlines(), "first records:"]
    lines += [f"  {_as_json(one.fields)}" for one in found.rows[:_SHOWN]]
    if found.refused:
        lines.append(f"{counted(len(found.refused), 'dead letter')}, the first ones:")
        lines += [f"  {one.place}: {one.message}" for one in found.refused[:_SHOWN]]
    return "\n".join(lines)


def _as_json(fields: object) -> str:
    # Decimals are numbers of the source with all their digits.
    return json.dumps(fields, default=float, ensure_ascii=False)


def _refused(place: str, reason: str, message: str) -> JsonObject:
    return {"place": place, "reason": reason, "message": message}
