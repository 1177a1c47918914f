"""What the commands of contracts have in common: keys, confirmation, and the view of a contract."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline import durations
from pipeline.cli.session import Session
from pipeline.clock import rfc3339
from pipeline.contracts.documents.keys import SEED_BYTES, fingerprint
from pipeline.contracts.documents.parties import PartyKeys
from pipeline.contracts.documents.terms_yaml import written_terms
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.negotiation.states import OPEN
from pipeline.contracts.negotiation.steps import ANSWER_WITHIN_MS
from pipeline.contracts.terms import PartyId
from pipeline.errors import InputError, RefusedError, UsageError
from pipeline.event_log.event import EventKind
from pipeline.operations.contracts.key_files import KeyFolder
from pipeline.operations.contracts.negotiating import Negotiating
from pipeline.operations.contracts.parties import Confirm, Parties
from schemas.json_value import Encodable

if TYPE_CHECKING:
    from pipeline.operations.connections import Connections

FILE_BYTES_MAX = 50_000_000
"""The largest file of a contract or a ledger that is read."""
trust_option = click.option(
    "--yes", is_flag=True, help="Do not ask whether a partner's key is its own, the first time."
)


def new_seed() -> bytes:
    """Random bytes for a private key, from the operating system."""
    return secrets.token_bytes(SEED_BYTES)


def confirming(session: Session, *, yes: bool) -> Confirm:
    """Confirmation of a partner's key; `yes`: without a question."""

    def confirm(keys: PartyKeys) -> None:
        shown = fingerprint(keys.current.public)
        session.printer.note(f"the key of {keys.party} is {shown}; it was not seen here before")
        if yes:
            return
        if not session.printer.can_ask:
            raise RefusedError(
                f"there is no terminal to ask whether this is the key of {keys.party}",
                place=f"participant {keys.party}",
                hint=f"compare it with what `medusa participant show` prints for {keys.party}, "
                "and say --yes.",
            )
        if not click.confirm("is this what the partner says?", err=True):
            raise RefusedError("nothing was done: the answer was no")

    return confirm


def parties_of(session: Session, connections: "Connections") -> Parties:
    """The keys of the participant of the settings."""
    folder = KeyFolder(Path(session.settings.keys))
    return Parties(PartyId(session.participant), connections.catalog, folder, session.clock)


def negotiating(session: Session, connections: "Connections", *, yes: bool) -> Negotiating:
    """The contracts of the participant of the settings."""
    return Negotiating(parties_of(session, connections), confirming(session, yes=yes))


def read_text(file: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read, or is no text.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise InputError(f"the file has more than {FILE_BYTES_MAX:,} bytes", place=str(file))
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise InputError(f"the file cannot be read: {why}", place=str(file)) from error


def as_data(contract: Negotiation) -> Mapping[str, Encodable]:
    """A contract for programs: its state, and the terms that it is about."""
    terms, proposal = contract.latest, contract.open
    until_ms = contract.until_ms
    return {
        "contract": contract.contract,
        "state": contract.state.value,
        "buyer": terms.contract.buyer,
        "seller": terms.contract.seller,
        "proposed_by": contract.open_by,
        "answer_until": rfc3339(proposal.answer_until_ms) if proposal else None,
        "ends_at": rfc3339(until_ms) if until_ms is not None else None,
        "documents": len(contract.documents),
        "terms": written_terms(terms),
    }


def next_step(contract: Negotiation, me: str) -> str:
    """What can be done about a contract, in words; empty: nothing has to be."""
    if contract.state not in OPEN:
        return ""
    if contract.open_by == me:
        return f"waits for {contract.other(PartyId(me))}"
    return "waits for your answer"


def show_signed(
    session: Session, connections: "Connections", contract: Negotiation, what: str
) -> None:
    """Log and print what a command has signed."""
    me = PartyId(session.participant)
    partner = contract.other(me)
    session.log_event(
        connections,
        EventKind.CONTRACT_SIGNED,
        contract=contract.contract,
        partner=partner,
        document=str(contract.documents[-1].body["document"]),
        state=contract.state.value,
    )
    waits = next_step(contract, me)
    text = f"contract {contract.contract} with {partner} {what}: it is {contract.state.value}"
    session.printer.show(as_data(contract), f"{text}; it {waits}" if waits else text)


def _answer_within(_ctx: click.Context, _option: click.Parameter, text: str) -> int:
    try:
        found = durations.parse(text)
    except ValueError as error:
        raise UsageError(f"--answer-within: {error}") from error
    if found == 0:
        raise UsageError("--answer-within is longer than 0s")
    return found


answer_option = click.option(
    "--answer-within",
    "answer_within_ms",
    metavar="DURATION",
    default=durations.format(ANSWER_WITHIN_MS),
    show_default=True,
    callback=_answer_within,
    help="The proposal lapses if it is not answered within this time.",
)
