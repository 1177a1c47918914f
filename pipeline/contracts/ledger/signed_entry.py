"""An entry with the signatures of both parties, and its line of text."""

from dataclasses import dataclass

from pipeline.contracts.documents.canonical import canonical, read_object
from pipeline.contracts.documents.keys import KeyId, PrivateKey, Signature
from pipeline.contracts.documents.parties import KeyRing
from pipeline.contracts.documents.signed import BYTES_MAX, Signed, check_signature, sign
from pipeline.contracts.ledger.entries import Entry, decode_entry, encode_entry
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from schemas.json_value import Json, JsonObject, list_of, number_of, object_of, text_of

_STAMP_BYTES = 1_000


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """Signature of an entry by one party: who, with which key, when."""

    by: PartyId
    key: KeyId
    at_ms: Millis
    signature: Signature


@dataclass(frozen=True, slots=True)
class SignedEntry:
    """An entry with its signatures, sorted by party."""

    entry: Entry
    stamps: tuple[Stamp, ...]

    @property
    def signers(self) -> frozenset[PartyId]:
        """Who has signed it, if the signatures are right."""
        return frozenset(one.by for one in self.stamps)

    def text(self) -> str:
        """The entry in one line of canonical JSON."""
        signatures: list[Json] = [
            {"by": one.by, "key": one.key, "at_ms": one.at_ms, "signature": one.signature}
            for one in self.stamps
        ]
        whole: JsonObject = {"entry": encode_entry(self.entry), "signatures": signatures}
        return canonical(whole).decode()

    def signed_by(self, party: PartyId, key: PrivateKey, at_ms: Millis) -> "SignedEntry":
        """The entry with one more signature.

        Raises:
            RefusedError: the party has signed it already, or it is too large.
        """
        if party in self.signers:
            raise RefusedError(f"{party} has signed it already", place=str(self.entry.place))
        signed = sign(encode_entry(self.entry), party, key, at_ms)
        stamp = Stamp(party, key.id, at_ms, signed.signature)
        return SignedEntry(self.entry, tuple(sorted((*self.stamps, stamp))))

    def documents(self) -> tuple[Signed, ...]:
        """The entry as each of them has signed it."""
        body = encode_entry(self.entry)
        return tuple(
            Signed({**body, "by": one.by, "key": one.key, "at_ms": one.at_ms}, one.signature)
            for one in self.stamps
        )

    def check_signatures(self, ring: KeyRing, parties: frozenset[PartyId], where: str) -> None:
        """Check that these parties have signed it, and nobody else.

        Raises:
            RefusedError: a signature is missing, or does not fit; one-sided entries owe nothing.
        """
        for signed in self.documents():
            check_signature(signed, ring, where)
        missing = sorted(parties - self.signers)
        if missing:
            raise RefusedError(
                f"{', '.join(missing)} did not sign it", place=where, hint="it owes nothing."
            )
        if len(self.stamps) != len(parties):
            raise RefusedError("others have signed it", place=where)


def read_entry(text: str, where: str) -> SignedEntry:
    """Parse an entry with its signatures; does not check these.

    Raises:
        RefusedError: it is none, or has another form than the canonical one.
    """
    if len(text) > BYTES_MAX + 2 * _STAMP_BYTES:
        raise RefusedError(f"the entry has {len(text):,} characters", place=where)
    found = read_object(text.encode(), "entry of a ledger", where)
    try:
        stamps = tuple(_stamp(object_of(one)) for one in list_of(found["signatures"]))
        body = object_of(found["entry"])
    except (KeyError, TypeError) as error:
        raise RefusedError(f"this is no entry of a ledger: {error}", place=where) from error
    signed = SignedEntry(decode_entry(body, where), stamps)
    if signed.text() != text:
        raise RefusedError("this entry has unknown fields", place=where)
    return signed


def _stamp(found: JsonObject) -> Stamp:
    return Stamp(
        PartyId(text_of(found["by"])),
        KeyId(text_of(found["key"])),
        Millis(number_of(found["at_ms"])),
        Signature(text_of(found["signature"])),
    )
