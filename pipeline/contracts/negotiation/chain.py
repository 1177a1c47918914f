"""The chain of a contract's documents: each contains the digest of the one before it.

Both parties store the documents that they signed; together these form one chain, in which neither
can change, omit or reorder anything alone. `Negotiation` is its state.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pipeline.contracts.agreement import Agreement
from pipeline.contracts.documents.canonical import NOTHING_BEFORE, Digest
from pipeline.contracts.documents.parties import SKEW_MAX_MS, KeyRing
from pipeline.contracts.documents.signed import Signed, check_clock, check_signature
from pipeline.contracts.negotiation.acts import Acceptance, Cancellation, Proposal, decode_act
from pipeline.contracts.negotiation.states import AGREED, OPEN, Event, State, move
from pipeline.contracts.terms import ContractId, PartyId
from pipeline.errors import RefusedError
from pipeline.ids import Millis

DOCUMENTS_MAX: Final = 200
"""Documents of a contract, with all proposals and renewals."""


@dataclass(frozen=True, slots=True)
class Negotiation:
    """State of a contract after some of its documents.

    Args:
        contract: its name.
        state: without what the time since the last document has changed; see `at`.
        parties: buyer and seller; empty before the first document.
        agreed: the terms that both signed, the oldest first.
        open: the proposal that waits for its answer.
        open_by: who proposed it.
        ends_at_ms: end after a cancellation.
        documents: the chain.
    """

    contract: ContractId
    state: State = State.ABSENT
    parties: frozenset[PartyId] = frozenset()
    agreed: tuple[Agreement, ...] = ()
    open: Proposal | None = None
    open_by: PartyId | None = None
    ends_at_ms: Millis | None = None
    documents: tuple[Signed, ...] = ()

    @property
    def place(self) -> str:
        """Its name, for errors."""
        return f"contract {self.contract}"

    @property
    def head(self) -> Digest:
        """Digest of the last document."""
        return self.documents[-1].digest if self.documents else NOTHING_BEFORE

    @property
    def last_ms(self) -> Millis:
        """Time of the last document."""
        return self.documents[-1].at_ms if self.documents else Millis(0)

    @property
    def until_ms(self) -> Millis | None:
        """End of what was agreed last, or of the notice; None: nothing was agreed."""
        if self.ends_at_ms is not None or not self.agreed:
            return self.ends_at_ms
        return self.agreed[-1].contract.until_ms

    @property
    def latest(self) -> Agreement:
        """The terms that a reader wants to see: those of the open proposal, else the agreed ones.

        Raises:
            RefusedError: there is no document.
        """
        if self.open is not None:
            return self.open.terms
        if not self.agreed:
            raise RefusedError("there is no such contract", place=self.place)
        return self.agreed[-1]

    def other(self, party: PartyId) -> PartyId:
        """The other party."""
        (found,) = self.parties - {party}
        return found

    def at(self, now_ms: Millis) -> "Negotiation":
        """The state at a time: proposals lapse, contracts end."""
        found = self
        if found.state in OPEN and found.open is not None and now_ms > found.open.answer_until_ms:
            state = move(found.state, Event.LAPSED, self.place)
            found = replace(found, state=state)
            if state is State.ACTIVE:  # a contract that has lapsed shows its proposal
                found = replace(found, open=None, open_by=None)
        until_ms = found.until_ms
        if found.state in AGREED and until_ms is not None and now_ms >= until_ms:
            state = move(found.state, Event.EXPIRED, self.place)
            found = replace(found, state=state, open=None, open_by=None)
        return found

    def in_force(self, at_ms: Millis) -> Agreement | None:
        """The terms that hold at a time, which may be past; None: none do.

        Those of a renewal take the place of earlier ones when they begin, also of a longer
        duration.
        """
        if self.ends_at_ms is not None and at_ms >= self.ends_at_ms:
            return None
        begun = [one for one in self.agreed if one.contract.from_ms <= at_ms]
        return begun[-1] if begun and begun[-1].contract.is_in_force(at_ms) else None


def read_chain(
    contract: ContractId, documents: Iterable[Signed], ring: KeyRing, now_ms: Millis
) -> Negotiation:
    """Verify the documents of both parties, in any order, and return the state that they lead to.

    Args:
        contract: its name.
        documents: of both parties.
        ring: the keys of both, compared with the remembered ones.
        now_ms: wall time.

    Raises:
        RefusedError: a document is changed, missing, repeated, signed by a stranger, of another
            contract, or impossible where it is; names it by its number in the chain.
    """
    found = Negotiation(contract)
    following: dict[str, Signed] = {}
    for one in documents:
        previous = str(one.body.get("previous"))
        if previous in following:
            what = "is there twice" if following[previous] == one else "has two successors"
            raise RefusedError(
                f"document {previous[:12] or 'at the beginning'} {what}", place=found.place
            )
        following[previous] = one
    while (signed := following.pop(str(found.head), None)) is not None:
        place = f"{found.place}, document {len(found.documents) + 1}"
        check_signature(signed, ring, place)
        check_clock(signed, now_ms, place)
        found = follow(found, signed)
    if following:
        raise RefusedError(
            f"{len(following)} of its documents follow one that is missing",
            place=f"{found.place}, after document {len(found.documents)}",
            hint="a document was removed or changed; ask the partner for its copy.",
        )
    return found


def follow(before: Negotiation, signed: Signed) -> Negotiation:
    """The state after one more document, whose signature is checked already.

    Raises:
        RefusedError: it is not possible now; nothing is changed.
    """
    place = f"{before.place}, document {len(before.documents) + 1}"
    act = decode_act(signed, place)
    _check_envelope(before, signed, place)
    now = before.at(signed.at_ms)
    match act:
        case Proposal():
            after = _proposed(now, act, signed, place)
        case Acceptance():
            _check_turn(now, signed.by, place)
            after = _accepted(now, place)
        case Cancellation():
            after = _cancelled(now, act, signed, place)
    return replace(after, documents=(*before.documents, signed))


def _check_envelope(before: Negotiation, signed: Signed, place: str) -> None:
    if signed.body.get("contract") != before.contract:
        raise RefusedError(f"it is of contract {signed.body.get('contract')}", place=place)
    if signed.body.get("previous") != before.head:
        raise RefusedError(
            "it does not follow the last document",
            place=place,
            hint="it was signed for an earlier state of the contract: a replay, or a lost race.",
        )
    if before.parties and signed.by not in before.parties:
        raise RefusedError(f"{signed.by} is no party of this contract", place=place)
    behind_ms = before.last_ms - signed.at_ms
    if behind_ms > SKEW_MAX_MS:
        raise RefusedError(
            f"it was signed {behind_ms // 1_000} s before the document that it follows",
            place=place,
            hint=f"set the clocks of both: they may disagree by {SKEW_MAX_MS // 1_000} s.",
        )
    if len(before.documents) >= DOCUMENTS_MAX:
        raise RefusedError(
            f"it has {DOCUMENTS_MAX} documents", place=place, hint="begin a new contract."
        )


def _check_turn(now: Negotiation, party: PartyId, place: str) -> None:
    if now.state in OPEN and party == now.open_by:
        raise RefusedError(
            f"{party} has proposed this itself",
            place=place,
            hint=f"{now.other(party)} answers it; `medusa contract cancel` withdraws it.",
        )


def _proposed(now: Negotiation, act: Proposal, signed: Signed, place: str) -> Negotiation:
    contract = act.terms.contract
    parties = frozenset({contract.buyer, contract.seller})
    event = {State.ABSENT: Event.PROPOSED, State.ACTIVE: Event.RENEWED}.get(
        now.state, Event.COUNTERED
    )
    state = move(now.state, event, place)
    if contract.id != now.contract:
        raise RefusedError(f"its terms are of contract {contract.id}", place=place)
    if signed.by not in parties or (now.parties and parties != now.parties):
        raise RefusedError("its terms are about other participants", place=place)
    if event is Event.COUNTERED:
        _check_turn(now, signed.by, place)
    before = now.agreed[-1].contract if now.agreed else contract
    if (before.buyer, before.price.currency) != (contract.buyer, contract.price.currency):
        raise RefusedError(
            "a renewal keeps buyer, seller and currency",
            place=place,
            hint="for another direction or currency make another contract.",
        )
    if now.agreed and contract.from_ms < signed.at_ms - SKEW_MAX_MS:
        raise RefusedError(
            "a renewal begins in the past",
            place=place,
            hint="what was run until now has the price that was agreed for it.",
        )
    if not signed.at_ms < act.answer_until_ms <= contract.until_ms:
        raise RefusedError(
            "the time to answer ends before the proposal, or after the contract", place=place
        )
    return replace(now, state=state, parties=parties, open=act, open_by=signed.by)


def _accepted(now: Negotiation, place: str) -> Negotiation:
    state = move(now.state, Event.ACCEPTED, place)
    assert now.open is not None  # noqa: S101 - the states in which it is possible have one
    agreed = (*now.agreed, now.open.terms)
    return replace(now, state=state, agreed=agreed, open=None, open_by=None)


def _cancelled(now: Negotiation, act: Cancellation, signed: Signed, place: str) -> Negotiation:
    state = move(now.state, Event.CANCELLED, place)
    if state is State.WITHDRAWN:
        return replace(now, state=state)
    earliest_ms = signed.at_ms + now.agreed[-1].contract.notice_ms
    if act.ends_at_ms < earliest_ms:
        raise RefusedError("the cancellation does not keep the notice", place=place)
    until_ms = now.until_ms
    ends_at_ms = act.ends_at_ms if until_ms is None else Millis(min(act.ends_at_ms, until_ms))
    return replace(now, state=state, open=None, open_by=None, ends_at_ms=ends_at_ms)
