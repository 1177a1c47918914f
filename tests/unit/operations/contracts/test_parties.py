"""Key files, and changes of a key that were interrupted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.contracts.documents.parties import PartyKeys
from pipeline.contracts.terms import PartyId
from pipeline.errors import EnvironmentProblem, RefusedError
from pipeline.ids import ParticipantId
from pipeline.operations.contracts.key_files import KeyFolder
from pipeline.operations.contracts.parties import Parties
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import session
from tests.unit.contracts.parties import ALICE, BOB, EVE, key, keys
from tests.unit.deploy.twins import TwinClock


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    """Alice, who has a key."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ParticipantId(ALICE), ParticipantId(BOB))
    found = Parties(ALICE, catalog, KeyFolder(tmp_path / "keys"), TwinClock())
    found.create(seeds().__next__)
    return found


def seeds() -> Iterator[bytes]:
    """Different seeds."""
    for number in range(100):
        yield bytes([number]) * 32


def test_an_interrupted_change_is_completed(parties: Parties) -> None:
    """If the catalog has the new key, its file takes the place of the old one."""
    before = parties.catalog.keys.get(ALICE)
    assert before is not None
    new = key(ALICE, 7)
    parties.folder.prepare(ALICE, new)
    assert parties.own_key().public == before.current.public, "the catalog has the old one"
    after = before.rotated(new, parties.clock.now_ms(), parties.own_key())
    parties.catalog.keys.replace(before, after)
    assert parties.own_key().public == new.public
    assert parties.folder.following(ALICE) is None
    current = parties.folder.current(ALICE)
    assert current is not None
    assert current.public == new.public


def test_a_change_that_was_begun_goes_on_with_its_key(parties: Parties) -> None:
    """A private key that was written is used; none is overwritten."""
    parties.folder.prepare(ALICE, key(ALICE, 7))
    assert parties.rotate(seeds().__next__, revoke=False).current.public == key(ALICE, 7).public
    with pytest.raises(RefusedError, match="never overwritten"):
        parties.folder.create(ALICE, key(ALICE))


def test_a_lost_key_is_revoked_without_it(parties: Parties) -> None:
    """Otherwise it endorses the new one."""
    parties.folder.file(ALICE).unlink()
    with pytest.raises(RefusedError, match="is not in"):
        parties.rotate(seeds().__next__, revoke=False)
    found = parties.rotate(iter([b"x" * 32]).__next__, revoke=True)
    assert [one.is_revoked for one in found.keys] == [True, False]
    assert parties.own_key().public == found.current.public


def nobody(keys_of_partner: PartyKeys) -> None:
    """A confirmation that must not be asked for."""
    pytest.fail(f"asked about {keys_of_partner.party}")


def test_a_key_is_confirmed_once(parties: Parties) -> None:
    """And remembered."""
    parties.catalog.keys.replace(None, keys(BOB))
    asked: list[PartyId] = []
    for _ in range(2):
        parties.ring((BOB,), lambda found: asked.append(found.party))
    assert asked == [BOB]
    assert parties.folder.known() == {BOB: key(BOB).public}
    parties.ring((BOB,), nobody)
    with pytest.raises(RefusedError, match="participant eve has no key"):
        parties.ring((EVE,), nobody)


def test_known_keys_are_names_and_keys(parties: Parties) -> None:
    """A damaged line is named."""
    parties.folder.remember(BOB, key(BOB).public)
    file = parties.folder.path / "known_keys"
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(f"bob {key(BOB).public}\neve x\n")
    with pytest.raises(RefusedError, match="no public key") as caught:
        parties.folder.known()
    assert caught.value.place.endswith("known_keys, line 2")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the setting."""
    (tmp_path / "file").write_text("")
    folder = KeyFolder(tmp_path / "file" / "keys")
    with pytest.raises(EnvironmentProblem, match="keys cannot be") as caught:
        folder.create(ALICE, key(ALICE))
    assert "MEDUSA_KEYS" in caught.value.hint
