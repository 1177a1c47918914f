"""Keys of parties over time: when each was in use, which one its predecessor endorses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from pipeline.contracts.documents.canonical import canonical
from pipeline.contracts.documents.keys import (
    KeyId,
    PrivateKey,
    PublicKey,
    Signature,
    fingerprint,
    is_signed,
    key_id,
)
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from schemas.json_value import Json

SKEW_MAX_MS: Final = 5 * 60_000
"""How far the clocks of two parties may disagree."""
UNSIGNED: Final = Signature("")
KEYS_MAX: Final = 100
"""Keys of a party, with those it does not use any more."""


@dataclass(frozen=True, slots=True)
class PartyKey:
    """A public key of a party.

    Args:
        public: the key.
        from_ms: since when it is in use.
        until_ms: when another key took its place; None: it is in use.
        is_revoked: whether its private key may be in the hands of others.
        endorsement: signature of the key by the one before it; empty: of the first key, and of one
            that followed a revoked key.
    """

    public: PublicKey
    from_ms: Millis
    until_ms: Millis | None = None
    is_revoked: bool = False
    endorsement: Signature = UNSIGNED

    @property
    def id(self) -> KeyId:
        """Its id."""
        return key_id(self.public)


@dataclass(frozen=True, slots=True)
class PartyKeys:
    """The keys of a party, the oldest first; the last one is in use.

    Args:
        party: whose.
        keys: the keys.
        signature: of all of them, by the one in use: nobody else can add an earlier key, or undo
            that one was revoked.
    """

    party: PartyId
    keys: tuple[PartyKey, ...]
    signature: Signature

    @property
    def current(self) -> PartyKey:
        """The key in use."""
        return self.keys[-1]

    @property
    def is_sound(self) -> bool:
        """Whether the key in use has signed the keys as they are."""
        return is_signed(_history(self.party, self.keys), self.signature, self.current.public)

    def find(self, key: KeyId) -> PartyKey | None:
        """The key of an id."""
        return next((one for one in self.keys if one.id == key), None)

    def rotated(self, new: PrivateKey, now_ms: Millis, endorser: PrivateKey | None) -> "PartyKeys":
        """The keys after the change to a new one.

        Args:
            new: the key that is in use from now on.
            now_ms: wall time.
            endorser: the private key in use until now, which signs the new one; None: it is
                revoked, so that it endorses nothing.

        Raises:
            RefusedError: the party had the key before, or has had too many.
        """
        if any(one.public == new.public for one in self.keys):
            raise RefusedError("this key was in use before", place=f"participant {self.party}")
        if len(self.keys) >= KEYS_MAX:
            raise RefusedError(f"there were {KEYS_MAX} keys", place=f"participant {self.party}")
        last = replace(self.current, until_ms=now_ms, is_revoked=endorser is None)
        endorsed = endorser.sign(_statement(self.party, new.public)) if endorser else UNSIGNED
        added = PartyKey(new.public, now_ms, endorsement=endorsed)
        return _signed_keys(self.party, (*self.keys[:-1], last, added), new)

    def leads_from(self, known: PublicKey) -> bool:
        """Whether each key since a known one was endorsed by the one before it."""
        publics = [one.public for one in self.keys]
        if known not in publics:
            return False
        later = self.keys[publics.index(known) :]
        return all(
            is_signed(_statement(self.party, new.public), new.endorsement, old.public)
            for old, new in pairwise(later)
        )


def first_keys(party: PartyId, key: PrivateKey, now_ms: Millis) -> PartyKeys:
    """The keys of a party that has its first one."""
    return _signed_keys(party, (PartyKey(key.public, now_ms),), key)


KeyRing = Mapping[PartyId, PartyKeys]
"""The keys of the parties of a contract, which were compared with the remembered ones."""


def key_of(ring: KeyRing, party: PartyId, key: KeyId, at_ms: Millis, place: str) -> PublicKey:
    """The key with which a party signed a document.

    Args:
        ring: the keys of the parties.
        party: who signed.
        key: the key's id, as the document has it.
        at_ms: the document's time.
        place: names the document.

    Raises:
        RefusedError: the key is a stranger's, or was not in use at that time.
    """
    keys = ring.get(party)
    found = keys.find(key) if keys else None
    if found is None:
        raise RefusedError(
            f"{key} is no key of {party}",
            place=place,
            hint="it was signed by a stranger; ask the partner for its keys.",
        )
    if at_ms < found.from_ms - SKEW_MAX_MS:
        raise RefusedError(f"it is older than the key {key} of {party}", place=place)
    if found.until_ms is not None and at_ms >= found.until_ms:
        why = "revoked" if found.is_revoked else "replaced"
        raise RefusedError(
            f"{party} signed it with the key {key}, which was {why} before",
            place=place,
            hint="ask the partner to sign it again, with its key in use.",
        )
    return found.public


def check_trusted(found: PartyKeys, known: PublicKey) -> None:
    """Check that the keys of a party follow from the remembered one, and are as it signed them.

    Raises:
        RefusedError: they do not, so somebody else may have written them.
    """
    check_sound(found)
    if not found.leads_from(known):
        raise RefusedError(
            f"{found.party} has another key than the remembered one: "
            f"{fingerprint(found.current.public)} instead of {fingerprint(known)}",
            place=f"participant {found.party}",
            hint="ask the partner whether it has revoked its key; if so, "
            f"`medusa participant trust {found.party}` remembers the new one.",
        )


def check_sound(found: PartyKeys) -> None:
    """Check that the key in use has signed the keys of a party as they are.

    Raises:
        RefusedError: somebody else has changed them.
    """
    if not found.is_sound:
        raise RefusedError(
            f"the keys of {found.party} are not as it has signed them",
            place=f"participant {found.party}",
            hint="somebody else has changed them in the catalog.",
        )


def _signed_keys(party: PartyId, keys: tuple[PartyKey, ...], key: PrivateKey) -> PartyKeys:
    return PartyKeys(party, keys, key.sign(_history(party, keys)))


def _history(party: PartyId, keys: tuple[PartyKey, ...]) -> bytes:
    found: list[Json] = [
        {
            "key": one.public,
            "from_ms": one.from_ms,
            "until_ms": one.until_ms,
            "revoked": one.is_revoked,
            "endorsement": one.endorsement,
        }
        for one in keys
    ]
    return canonical({"document": "keys", "format": 1, "keys": found, "participant": party})


def _statement(party: PartyId, new: PublicKey) -> bytes:
    return canonical({"document": "key", "format": 1, "key": new, "participant": party})
