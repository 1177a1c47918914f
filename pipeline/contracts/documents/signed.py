"""Signed documents: a body of JSON, who signed it when and with which key, and the signature."""

from dataclasses import dataclass
from typing import Final

from pipeline.contracts.documents.canonical import Digest, canonical, digest, read_object
from pipeline.contracts.documents.keys import KeyId, PrivateKey, Signature, is_signed
from pipeline.contracts.documents.parties import SKEW_MAX_MS, KeyRing, key_of
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from schemas.json_value import Json, JsonObject

BYTES_MAX: Final = 200_000
"""The largest document that is read or signed."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A document with the signature of one party over its canonical form.

    Args:
        body: the document, which contains `by`, `key` and `at_ms`.
        signature: of the canonical form of the body.
    """

    body: JsonObject
    signature: Signature

    @property
    def by(self) -> PartyId:
        """Who signed it."""
        return PartyId(_text(self.body, "by"))

    @property
    def key(self) -> KeyId:
        """The key that it was signed with."""
        return KeyId(_text(self.body, "key"))

    @property
    def at_ms(self) -> Millis:
        """When it was signed, by the clock of who signed it."""
        return Millis(_number(self.body, "at_ms"))

    @property
    def digest(self) -> Digest:
        """Digest of its body, which a following document contains."""
        return digest(self.body)

    def text(self) -> str:
        """The document with its signature, in canonical JSON."""
        return canonical({"body": self.body, "signature": self.signature}).decode()


def sign(body: JsonObject, by: PartyId, key: PrivateKey, at_ms: Millis) -> Signed:
    """Sign a document; adds who, when and with which key.

    Raises:
        RefusedError: it is larger than `BYTES_MAX`.
    """
    whole: JsonObject = {**body, "by": by, "key": key.id, "at_ms": at_ms}
    data = canonical(whole)
    if len(data) > BYTES_MAX:
        raise RefusedError(
            f"the document has {len(data):,} bytes, at most {BYTES_MAX:,} are possible"
        )
    return Signed(whole, key.sign(data))


def read_signed(text: str, place: str) -> Signed:
    """Parse a document with its signature; does not check the signature.

    Raises:
        RefusedError: it is none, or has another form than the canonical one.
    """
    if len(text) > BYTES_MAX + 1_000:
        raise RefusedError(f"the document has {len(text):,} characters", place=place)
    found = read_object(text.encode(), "signed document", place)
    body, signature = found.get("body"), found.get("signature")
    if found.keys() != {"body", "signature"} or not isinstance(body, dict):
        raise RefusedError("this is no signed document", place=place)
    if not isinstance(signature, str):
        raise RefusedError("this is no signed document", place=place)
    signed = Signed(body, Signature(signature))
    try:
        _ = signed.by, signed.key, signed.at_ms
    except TypeError as error:
        raise RefusedError(f"this is no signed document: {error}", place=place) from error
    return signed


def check_signature(signed: Signed, ring: KeyRing, place: str) -> None:
    """Check that a document was signed by the party that it names, with a key in use then.

    Raises:
        RefusedError: it was not, or it was changed since.
    """
    public = key_of(ring, signed.by, signed.key, signed.at_ms, place)
    if not is_signed(canonical(signed.body), signed.signature, public):
        raise RefusedError(
            f"the signature of {signed.by} does not fit",
            place=place,
            hint="the document was changed after it was signed, or somebody else signed it.",
        )


def check_clock(signed: Signed, now_ms: Millis, place: str) -> None:
    """Check that a document was not signed in the future.

    Raises:
        RefusedError: clocks disagree by more than `SKEW_MAX_MS`.
    """
    ahead_ms = signed.at_ms - now_ms
    if ahead_ms > SKEW_MAX_MS:
        raise RefusedError(
            f"{signed.by} signed it {ahead_ms // 1_000} s in the future",
            place=place,
            hint=f"set the clocks of both: they may disagree by {SKEW_MAX_MS // 1_000} s.",
        )


def check_new(signed: Signed, ring: KeyRing, now_ms: Millis, place: str) -> None:
    """Check a document of a partner before this party signs what follows it.

    Raises:
        RefusedError: as `check_signature` and `check_clock`; or its key is revoked by now, so that
            somebody else may have signed it, at whatever time it says.
    """
    check_signature(signed, ring, place)
    check_clock(signed, now_ms, place)
    key = ring[signed.by].find(signed.key)
    if key is None or key.is_revoked:
        raise RefusedError(
            f"{signed.by} has revoked the key that it was signed with",
            place=place,
            hint="ask the partner to sign it again: somebody else may have signed this.",
        )


def _text(body: JsonObject, name: str) -> str:
    found: Json = body.get(name)
    if not isinstance(found, str) or not found:
        raise TypeError(f"{name} is {found!r}")
    return found


def _number(body: JsonObject, name: str) -> int:
    found: Json = body.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{name} is {found!r}")
    return found
