"""Steps of a negotiation: each signs one document, after the checks that a reader makes."""

from dataclasses import dataclass
from typing import Final

from pipeline.contracts.agreement import Agreement
from pipeline.contracts.documents.keys import PrivateKey
from pipeline.contracts.documents.parties import KeyRing
from pipeline.contracts.documents.signed import (
    Signed,
    check_clock,
    check_new,
    check_signature,
    sign,
)
from pipeline.contracts.negotiation.acts import (
    REASON_MAX,
    Acceptance,
    Act,
    Cancellation,
    Proposal,
    encode_act,
)
from pipeline.contracts.negotiation.chain import Negotiation, follow
from pipeline.contracts.negotiation.states import AGREED, OPEN, Event, State, move
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import Millis

ANSWER_WITHIN_MS: Final = 7 * 24 * 3_600_000
"""Default time to answer a proposal."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs, when.

    Args:
        party: the party.
        key: its private key in use.
        ring: the keys of both parties.
        now_ms: wall time.
    """

    party: PartyId
    key: PrivateKey
    ring: KeyRing
    now_ms: Millis

    def signed(self, before: Negotiation, act: Act) -> tuple[Signed, Negotiation]:
        """Sign an act; returns the document, and the state after it.

        Raises:
            RefusedError: it is not possible now, or the key or the clock is wrong; nothing is
                signed that a reader would refuse.
        """
        if before.documents:
            check_clock(before.documents[-1], self.now_ms, before.place)
        body = encode_act(act, before.contract, before.head)
        found = sign(body, self.party, self.key, self.now_ms)
        check_signature(found, self.ring, before.place)
        return found, follow(before, found)


def propose(
    before: Negotiation, terms: Agreement, signer: Signer, answer_within_ms: int
) -> tuple[Signed, Negotiation]:
    """Propose a new contract."""
    _check_event(before, Event.PROPOSED, signer)
    return _terms(before, terms, signer, answer_within_ms)


def counter(
    before: Negotiation, terms: Agreement, signer: Signer, answer_within_ms: int
) -> tuple[Signed, Negotiation]:
    """Answer a proposal with other terms.

    Raises:
        RefusedError: there is no proposal of the partner, or these are its terms.
    """
    _check_event(before, Event.COUNTERED, signer)
    if before.open is not None and before.open.terms == terms:
        raise RefusedError(
            "these are the proposed terms",
            place=before.place,
            hint=f"`medusa contract accept {before.contract}` accepts them.",
        )
    return _terms(before, terms, signer, answer_within_ms)


def renew(
    before: Negotiation, terms: Agreement, signer: Signer, answer_within_ms: int
) -> tuple[Signed, Negotiation]:
    """Propose other terms, such as a later end, for a contract that is active."""
    _check_event(before, Event.RENEWED, signer)
    return _terms(before, terms, signer, answer_within_ms)


def accept(before: Negotiation, signer: Signer) -> tuple[Signed, Negotiation]:
    """Accept the proposal of the partner.

    Raises:
        RefusedError: there is none, it has lapsed, its terms have ended, or the key that it was
            signed with is revoked.
    """
    _check_event(before, Event.ACCEPTED, signer)
    check_new(before.documents[-1], signer.ring, signer.now_ms, before.place)
    return signer.signed(before, Acceptance())


def cancel(before: Negotiation, signer: Signer, reason: str) -> tuple[Signed, Negotiation]:
    """Withdraw or reject a proposal, or end a contract after its notice."""
    now = _check_event(before, Event.CANCELLED, signer)
    if len(reason) > REASON_MAX or not reason.isprintable():
        raise RefusedError(f"the reason is one line of up to {REASON_MAX} characters")
    notice_ms = now.agreed[-1].contract.notice_ms if now.state in AGREED else 0
    return signer.signed(before, Cancellation(Millis(signer.now_ms + notice_ms), reason))


def _terms(
    before: Negotiation, terms: Agreement, signer: Signer, answer_within_ms: int
) -> tuple[Signed, Negotiation]:
    until_ms = min(signer.now_ms + answer_within_ms, terms.contract.until_ms)
    if terms.contract.until_ms <= signer.now_ms:
        raise RefusedError("these terms have ended already", place=before.place)
    return signer.signed(before, Proposal(terms, Millis(until_ms)))


def _check_event(before: Negotiation, event: Event, signer: Signer) -> Negotiation:
    """The state now, in which the event is possible."""
    now = before.at(signer.now_ms)
    if event is Event.PROPOSED and now.state is not State.ABSENT:
        raise RefusedError(
            f"there is a contract of this name: it is {now.state.value}",
            place=before.place,
            hint="`medusa contract counter` answers a proposal, `medusa contract renew` changes "
            "an active contract; another contract needs another name.",
        )
    move(now.state, event, before.place)
    if event is Event.CANCELLED or now.state not in OPEN or signer.party != now.open_by:
        return now
    raise RefusedError(
        f"{signer.party} has proposed this itself",
        place=before.place,
        hint=f"{now.other(signer.party)} answers it; `medusa contract cancel` withdraws it.",
    )
