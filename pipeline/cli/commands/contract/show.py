"""`medusa contract show`: terms, state and documents of a contract."""

import click
import yaml

from pipeline.cli.contracts import as_data, negotiating, next_step, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.clock import rfc3339
from pipeline.contracts.documents.odcs import odcs
from pipeline.contracts.documents.terms_yaml import write_terms
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.operations.contracts.negotiating import existing
from schemas.json_value import Encodable


@click.command("show")
@click.argument("name")
@click.option(
    "--odcs",
    "as_odcs",
    is_flag=True,
    help="Print it as a document of the Open Data Contract Standard, in YAML.",
)
@trust_option
@with_session
def command(session: Session, name: str, *, as_odcs: bool, yes: bool) -> None:
    """Show the terms of contract NAME, those proposed before those agreed, and who signed what.

    \b
    Examples:
      medusa contract show load-2027
      medusa contract show bob.load-2027 -o json
      medusa contract show load-2027 --odcs > load-2027.odcs.yaml
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        found, signer, _ = contracts.read(contracts.find(name))
    contract = existing(found.at(signer.now_ms))
    if as_odcs:
        session.printer.line(yaml.safe_dump(odcs(contract), sort_keys=False).rstrip())
        return
    documents: list[Encodable] = [
        {"body": one.body, "signature": one.signature} for one in contract.documents
    ]
    data: dict[str, Encodable] = {**as_data(contract), "signed_documents": documents}
    session.printer.show(data, _text(contract, str(session.participant)))


def _text(contract: Negotiation, me: str) -> str:
    waits = next_step(contract, me)
    lines = [f"# {contract.state.value}{f'; {waits}' if waits else ''}"]
    lines += [
        f"# {one.body['document']} by {one.by}, {rfc3339(one.at_ms)}, key {one.key}"
        for one in contract.documents
    ]
    return "\n".join([*lines, write_terms(contract.latest).rstrip()])
