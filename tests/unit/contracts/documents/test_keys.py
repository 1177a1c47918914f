"""Ed25519 keys: signatures, files, rotation, trust."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.documents.keys import (
    check_public,
    fingerprint,
    is_signed,
    key_from_pem,
    key_from_seed,
    key_id,
)
from pipeline.contracts.documents.parties import KEYS_MAX, PartyKeys, check_trusted, key_of
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from tests.unit.contracts.parties import ALICE, BOB, DAY_MS, EVE, NOW, RING, key, keys

PUBLIC = key(ALICE).public
ROTATED = keys(ALICE).rotated(key(ALICE, 1), NOW, key(ALICE))
REVOKED = keys(ALICE).rotated(key(ALICE, 1), NOW, None)


def test_a_published_vector_is_signed_alike() -> None:
    """The second test of section 7.1 of RFC 8032."""
    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    one = key_from_seed(secret)
    assert one.public == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert one.sign(b"\x72") == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


@given(st.binary(max_size=40), st.integers(0, 127), st.sampled_from("0123456789abcdef"))
def test_a_signature_fits_one_message_and_one_key(message: bytes, at: int, digit: str) -> None:
    """Any changed digit, message or key does not fit."""
    signature = key(ALICE).sign(message)
    assert is_signed(message, signature, PUBLIC)
    assert not is_signed(message + b"x", signature, PUBLIC)
    assert not is_signed(message, signature, key(BOB).public)
    other = signature[:at] + digit + signature[at + 1 :]
    assert is_signed(message, other, PUBLIC) is (other == signature)


@pytest.mark.parametrize("signature", ["", "zz", "AB" * 64, "ab", "é"])
def test_other_texts_are_no_signatures(signature: str) -> None:
    """Refused without an error of the driver."""
    assert not is_signed(b"", signature, PUBLIC)


def test_a_key_is_written_to_and_read_from_a_file() -> None:
    """And is never shown."""
    one = key(ALICE)
    assert key_from_pem(one.pem(), "alice.key").public == PUBLIC
    assert "PRIVATE" not in repr(one)
    for wrong in (b"", b"x", one.pem().replace(b"M", b"N", 1)):
        with pytest.raises(RefusedError, match="no private Ed25519 key"):
            key_from_pem(wrong, "alice.key")


def test_keys_have_ids_and_fingerprints() -> None:
    """Short for documents, long for people."""
    assert (len(key_id(PUBLIC)), len(fingerprint(PUBLIC))) == (16, 50)
    assert check_public(PUBLIC, "") == PUBLIC
    for wrong in ("", "x", PUBLIC.upper(), PUBLIC[2:]):
        with pytest.raises(RefusedError, match="no public key"):
            check_public(wrong, "")


def test_a_rotated_key_is_endorsed_by_the_one_before() -> None:
    """So whoever remembers the old one trusts the new one."""
    check_trusted(ROTATED, PUBLIC)
    check_trusted(ROTATED, ROTATED.current.public)
    twice = ROTATED.rotated(key(ALICE, 2), Millis(NOW + 1), key(ALICE, 1))
    check_trusted(twice, PUBLIC)
    assert [one.until_ms for one in twice.keys] == [NOW, NOW + 1, None]


def test_a_key_that_was_not_endorsed_is_not_trusted() -> None:
    """A revoked key endorses nothing; another one's endorsement has no effect."""
    with pytest.raises(RefusedError, match="another key than the remembered one"):
        check_trusted(REVOKED, PUBLIC)
    forged = keys(ALICE).rotated(key(EVE), NOW, key(EVE))
    for wrong in (forged, keys(EVE)):
        with pytest.raises(RefusedError, match="medusa participant trust"):
            check_trusted(wrong, PUBLIC)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ROTATED, party=PartyId("bob")),
        replace(ROTATED, keys=(*keys(EVE).keys, *ROTATED.keys)),
        replace(ROTATED, keys=ROTATED.keys[1:]),
        replace(REVOKED, keys=(replace(REVOKED.keys[0], is_revoked=False), REVOKED.keys[1])),
        replace(ROTATED, keys=(replace(ROTATED.keys[0], until_ms=None), ROTATED.keys[1])),
        replace(ROTATED, signature=key(EVE).sign(b"")),
    ],
)
def test_keys_that_somebody_else_has_changed_are_refused(changed: PartyKeys) -> None:
    """An earlier key cannot be added, nor a revoked one be used again."""
    with pytest.raises(RefusedError, match="not as it has signed them"):
        check_trusted(changed, changed.current.public)


def test_a_key_signs_while_it_is_in_use() -> None:
    """Before and after, and of a stranger, it is refused."""
    ring = {**RING, ALICE: ROTATED}
    old, new = (one.id for one in ROTATED.keys)
    assert key_of(ring, ALICE, old, Millis(NOW - 1), "") == PUBLIC
    assert key_of(ring, ALICE, new, NOW, "") == key(ALICE, 1).public
    with pytest.raises(RefusedError, match="replaced before"):
        key_of(ring, ALICE, old, NOW, "")
    with pytest.raises(RefusedError, match="revoked before"):
        key_of({ALICE: REVOKED}, ALICE, old, NOW, "")
    with pytest.raises(RefusedError, match="older than the key"):
        key_of(ring, ALICE, new, Millis(NOW - DAY_MS), "")
    with pytest.raises(RefusedError, match="no key of eve"):
        key_of(ring, EVE, key(EVE).id, NOW, "")
    with pytest.raises(RefusedError, match="no key of bob"):
        key_of(ring, BOB, old, NOW, "")


def test_a_key_is_used_once_and_there_is_a_bound() -> None:
    """An earlier key is no new one."""
    with pytest.raises(RefusedError, match="in use before"):
        ROTATED.rotated(key(ALICE), NOW, key(ALICE, 1))
    many = keys(ALICE)
    for number in range(1, KEYS_MAX):
        many = many.rotated(key(ALICE, number), NOW, None)
    with pytest.raises(RefusedError, match=f"{KEYS_MAX} keys"):
        many.rotated(key(ALICE, KEYS_MAX), NOW, None)
