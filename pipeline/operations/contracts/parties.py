"""Keys of the participant and of its partners: creation, change, trust on first use."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.clock import Clock
from pipeline.contracts.documents.keys import PrivateKey, key_from_seed
from pipeline.contracts.documents.parties import (
    KeyRing,
    PartyKeys,
    check_sound,
    check_trusted,
    first_keys,
)
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import ParticipantId
from pipeline.operations.contracts.key_files import KeyFolder

Confirm = Callable[[PartyKeys], None]
"""Asks whether a key that is seen for the first time is the partner's; raises if it is not."""
Seed = Callable[[], bytes]
"""Returns 32 random bytes."""


@dataclass(frozen=True, slots=True)
class Parties:
    """The keys with which a participant signs and verifies.

    Args:
        party: the participant.
        catalog: with the public keys of all.
        folder: with its private key, and those it has confirmed.
        clock: of changes.
    """

    party: PartyId
    catalog: Catalog
    folder: KeyFolder
    clock: Clock

    def create(self, seed: Seed) -> tuple[PartyKeys, bool]:
        """Create the key of the participant, unless it has one.

        Returns:
            Its keys, and whether anything was changed.

        Raises:
            RefusedError: it has a key, whose private part is not here.
        """
        self.catalog.format.ensure(ParticipantId(self.party))
        found = self.catalog.keys.get(self.party)
        if found is not None:
            self.private(found)
            return found, False
        key = self.folder.current(self.party)
        if key is None:
            key = key_from_seed(seed())
            self.folder.create(self.party, key)
        keys = first_keys(self.party, key, self.clock.now_ms())
        self.catalog.keys.replace(None, keys)
        return keys, True

    def rotate(self, seed: Seed, *, revoke: bool) -> PartyKeys:
        """Change the key. The new one is endorsed by the old one, unless that is revoked.

        Raises:
            RefusedError: there is no key yet, or its private part is not here.
        """
        before = self._own()
        endorser = None if revoke else self.private(before)
        key = self.folder.following(self.party)
        if key is not None and before.find(key.id) is not None:  # a change that was interrupted
            self.folder.install(self.party)
            key = None
        if key is None:
            key = key_from_seed(seed())
            self.folder.prepare(self.party, key)
        after = before.rotated(key, self.clock.now_ms(), endorser)
        self.catalog.keys.replace(before, after)
        self.folder.install(self.party)
        return after

    def private(self, keys: PartyKeys) -> PrivateKey:
        """The private key in use.

        Raises:
            RefusedError: it is not here.
        """
        found = self.folder.private(self.party, keys.current.public)
        if found is None:
            raise RefusedError(
                f"the private key of {self.party} is not in {self.folder.path}",
                place=f"participant {self.party}",
                hint="copy it from the machine that has it, or name its folder by MEDUSA_KEYS. If "
                "it is lost: `medusa participant key rotate --revoke`.",
            )
        return found

    def own_key(self) -> PrivateKey:
        """The private key of the participant."""
        return self.private(self._own())

    def ring(self, partners: Iterable[PartyId], confirm: Confirm) -> KeyRing:
        """The keys of the participant and of partners, compared with the confirmed ones.

        A key that is seen for the first time is confirmed and remembered; one that the remembered
        key has endorsed is remembered in its place.

        Raises:
            RefusedError: a partner has no key, or another one than the remembered one.
        """
        wanted = [self.party, *partners]
        found = self.catalog.keys.of(wanted)
        known = self.folder.known()
        for party in wanted:
            if party not in found:
                raise _no_key(party)
            keys = found[party]
            check_sound(keys)
            if party == self.party:
                continue
            if party not in known:
                confirm(keys)
            else:
                check_trusted(keys, known[party])
            if known.get(party) != keys.current.public:
                self.folder.remember(party, keys.current.public)
        return found

    def trust(self, partner: PartyId, confirm: Confirm) -> PartyKeys:
        """Confirm the present key of a partner, whatever was remembered before."""
        found = self.catalog.keys.get(partner)
        if found is None:
            raise _no_key(partner)
        check_sound(found)
        if self.folder.known().get(partner) != found.current.public:
            confirm(found)
            self.folder.remember(partner, found.current.public)
        return found

    def _own(self) -> PartyKeys:
        found = self.catalog.keys.get(self.party)
        if found is None:
            raise _no_key(self.party)
        return found


def _no_key(party: PartyId) -> RefusedError:
    return RefusedError(
        f"participant {party} has no key",
        place=f"participant {party}",
        hint=f"`medusa participant init`, by {party}, makes one.",
    )
