"""Ed25519 keys and signatures (RFC 8032); the key pair of a party, and the ids of public keys."""

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Final, NewType

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pipeline.errors import RefusedError

PublicKey = NewType("PublicKey", str)
"""The 32 bytes of a public key as 64 lower-case hexadecimal digits."""
KeyId = NewType("KeyId", str)
"""The first 16 hexadecimal digits of a public key's SHA-256; with the party it names one key."""
Signature = NewType("Signature", str)
"""The 64 bytes of a signature as 128 lower-case hexadecimal digits."""

SEED_BYTES: Final = 32
_KEY_BYTES: Final = 32
_ID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key; never shown."""

    _key: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> PublicKey:
        """Its public key."""
        raw = self._key.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        return PublicKey(raw.hex())

    @property
    def id(self) -> KeyId:
        """The id of its public key."""
        return key_id(self.public)

    def sign(self, message: bytes) -> Signature:
        """Sign a message."""
        return Signature(self._key.sign(message).hex())

    def pem(self) -> bytes:
        """The key as a PEM file (PKCS 8), not encrypted."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def key_from_seed(seed: bytes) -> PrivateKey:
    """The private key of 32 random bytes."""
    return PrivateKey(Ed25519PrivateKey.from_private_bytes(seed))


def key_from_pem(pem: bytes, place: str) -> PrivateKey:
    """The private key of a PEM file.

    Raises:
        RefusedError: it is not an Ed25519 key, or it is encrypted.
    """
    try:
        found = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise _no_key(place) from error
    if not isinstance(found, Ed25519PrivateKey):
        raise _no_key(place)
    return PrivateKey(found)


def key_id(public: PublicKey) -> KeyId:
    """The id of a public key."""
    return KeyId(hashlib.sha256(bytes.fromhex(public)).hexdigest()[:_ID_DIGITS])


def fingerprint(public: PublicKey) -> str:
    """A public key for people to compare: `SHA256:` and 43 characters, as ssh shows keys."""
    digest = hashlib.sha256(bytes.fromhex(public)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def check_public(text: str, place: str) -> PublicKey:
    """A text that must be a public key.

    Raises:
        RefusedError: it is none.
    """
    raw = _from_hex(text)
    if raw is None or len(raw) != _KEY_BYTES:
        raise RefusedError(
            "this is no public key", place=place, hint="an Ed25519 key has 64 hexadecimal digits."
        )
    return PublicKey(text)


def is_signed(message: bytes, signature: str, public: PublicKey) -> bool:
    """Whether a signature of a message was made with the private key of a public one."""
    raw = _from_hex(signature)
    if raw is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(raw, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _from_hex(text: str) -> bytes | None:
    """The bytes of lower-case hexadecimal digits; None: it is something else."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return raw if raw.hex() == text else None


def _no_key(place: str) -> RefusedError:
    return RefusedError(
        "this file holds no private Ed25519 key that is not encrypted",
        place=place,
        hint="`medusa participant init` makes one.",
    )
