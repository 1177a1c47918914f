"""What parties sign while they negotiate: proposals, acceptances, cancellations; as JSON."""

from dataclasses import dataclass
from typing import Final

from pipeline.contracts.agreement import Agreement
from pipeline.contracts.documents.canonical import Digest
from pipeline.contracts.documents.signed import Signed
from pipeline.contracts.documents.terms_json import decode_agreement, encode_agreement
from pipeline.contracts.terms import ContractId
from pipeline.errors import NewerFormatError, RefusedError
from pipeline.ids import Millis
from schemas.json_value import JsonObject, number_of, object_of, text_of

FORMAT: Final = 1
REASON_MAX: Final = 500
_ENVELOPE: Final = frozenset({"format", "document", "contract", "previous", "by", "key", "at_ms"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """Terms to which the other party may agree; signed by the one that proposes them.

    Args:
        terms: what is proposed.
        answer_until_ms: until when it may be answered.
    """

    terms: Agreement
    answer_until_ms: Millis


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Agreement to the document before it, a proposal."""


@dataclass(frozen=True, slots=True)
class Cancellation:
    """End of a negotiation, or of a contract after its notice.

    Args:
        ends_at_ms: when the contract ends.
        reason: in one line; may be empty.
    """

    ends_at_ms: Millis
    reason: str


Act = Proposal | Acceptance | Cancellation


def encode_act(act: Act, contract: ContractId, previous: Digest) -> JsonObject:
    """The act as JSON that is ready to be signed.

    Args:
        act: the act.
        contract: which contract it is about.
        previous: digest of the document that it follows.
    """
    head: JsonObject = {"format": FORMAT, "contract": contract, "previous": previous}
    match act:
        case Proposal():
            terms: JsonObject = encode_agreement(act.terms)
            until = act.answer_until_ms
            return {**head, "document": "proposal", "terms": terms, "answer_until_ms": until}
        case Acceptance():
            return {**head, "document": "acceptance"}
        case Cancellation():
            return {
                **head,
                "document": "cancellation",
                "ends_at_ms": act.ends_at_ms,
                "reason": act.reason,
            }


def decode_act(signed: Signed, place: str) -> Act:
    """The act of a signed document.

    Raises:
        RefusedError: it is none.
        NewerFormatError: a newer version of Medusa wrote it.
    """
    body = signed.body
    check_format(body, "document of a contract", place)
    try:
        kind, own = text_of(body["document"]), body.keys() - _ENVELOPE
        if kind == "proposal" and own == {"terms", "answer_until_ms"}:
            terms = decode_agreement(object_of(body["terms"]), place)
            return Proposal(terms, Millis(number_of(body["answer_until_ms"])))
        if kind == "acceptance" and not own:
            return Acceptance()
        if kind == "cancellation" and own == {"ends_at_ms", "reason"}:
            return Cancellation(Millis(number_of(body["ends_at_ms"])), text_of(body["reason"]))
    except (KeyError, TypeError) as error:
        raise RefusedError(f"this is no document of a contract: {error}", place=place) from error
    raise RefusedError(
        f"this is no document of a contract: {kind} with {', '.join(sorted(own)) or 'nothing'}",
        place=place,
    )


def check_format(body: JsonObject, what: str, place: str) -> None:
    """Check that a document is in a format that this program understands.

    Raises:
        RefusedError: it has none.
        NewerFormatError: a newer version of Medusa wrote it.
    """
    found = body.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise RefusedError(f"this is no {what}: it has no format", place=place)
    if found > FORMAT:
        raise NewerFormatError(
            f"a newer Medusa wrote this {what}: format {found}, this one reads up to {FORMAT}",
            place=place,
            hint="use the version of Medusa that wrote it, or a newer one.",
        )
