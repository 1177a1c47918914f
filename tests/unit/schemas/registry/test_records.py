import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.versioned_store import MAX_STEP_BYTES
from pipeline.errors import BrokenInvariantError, RefusedError
from schemas.compatibility import Level
from schemas.registry.config import Config, Mode
from schemas.registry.content import Content, Guid, Reference
from schemas.registry.metadata import metadata_of, rules_of
from schemas.registry.names import Context, SubjectName
from schemas.registry.records import (
    STEPS_CHARS_MAX,
    STEPS_MAX,
    Revision,
    change_of,
    place_of,
    revision_bytes,
    revision_of,
    value_of,
)
from schemas.registry.state import ConfigPut, ContentPut, ModePut, SubjectPut, Version
from tests.unit.schemas.registry.making import NAME

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.integers(1, 2**31 - 1)
NAMES = st.builds(
    SubjectName,
    st.builds(lambda text: Context(f".{text}"), TEXT.filter(lambda text: ":" not in text)),
    TEXT,
)
GUIDS = st.builds(Guid, st.text("0123456789abcdef-", min_size=36, max_size=36))
METADATA = st.none() | st.builds(
    metadata_of,
    st.fixed_dictionaries(
        {},
        optional={
            "tags": st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=3),
            "properties": st.dictionaries(TEXT, TEXT, max_size=3),
            "sensitive": st.lists(TEXT, max_size=3),
        },
    ),
)
RULE = st.fixed_dictionaries(
    {"name": st.text(string.ascii_letters, min_size=1, max_size=9), "type": TEXT.filter(bool)},
    optional={
        "doc": TEXT,
        "kind": st.sampled_from(["CONDITION", "TRANSFORM"]),
        "tags": st.lists(TEXT, max_size=3),
        "params": st.dictionaries(TEXT, TEXT, max_size=3),
        "expr": st.none() | TEXT,
        "onSuccess": TEXT,
        "disabled": st.booleans(),
    },
)
RULES = st.none() | st.builds(
    lambda rules, at: rules_of({"domainRules": rules, "enableAt": at}),
    st.lists(RULE, max_size=3, unique_by=lambda rule: rule["name"]),
    st.none() | TEXT,
)
CONTENTS = st.builds(
    Content,
    TEXT,
    st.lists(st.builds(Reference, TEXT, TEXT, NUMBER), max_size=3).map(tuple),
    METADATA,
    RULES,
)
NOT_EMPTY = st.none() | TEXT.filter(bool)
FLAG = st.none() | st.booleans()
CONFIGS = st.builds(
    Config,
    NOT_EMPTY,
    FLAG,
    FLAG,
    FLAG,
    FLAG,
    st.none() | st.sampled_from(Level),
    NOT_EMPTY,
    NOT_EMPTY,
    METADATA,
    METADATA,
    RULES,
    RULES,
)
VERSIONS = st.lists(st.builds(Version, NUMBER, NUMBER, GUIDS, st.integers(0), st.booleans()))
CHANGES = st.one_of(
    st.builds(SubjectPut, NAMES, VERSIONS.map(tuple)),
    st.builds(
        ContentPut,
        GUIDS,
        CONTENTS,
        st.lists(st.tuples(NAMES.map(lambda name: name.context), NUMBER)).map(tuple),
    ),
    st.builds(ConfigPut, NAMES, st.none() | CONFIGS),
    st.builds(ModePut, NAMES, st.none() | st.sampled_from(Mode)),
)


@given(CHANGES)
def test_every_change_round_trips(change: SubjectPut | ContentPut | ConfigPut | ModePut) -> None:
    """Its key is one name in a folder."""
    place = place_of(change)
    assert change_of(place, value_of(change)) == change
    folder, _, node = place.partition("/")
    assert folder in {"subjects", "contents", "configs", "modes"}
    assert node.isascii()
    assert not set(node) & set("/\x00")
    assert node not in {"", ".", ".."}


def test_a_name_is_stored_with_its_context() -> None:
    """For any characters."""
    assert place_of(ModePut(NAME("a/b"), None)) == "modes/:.:a%2Fb"
    assert place_of(SubjectPut(NAME(":.c:"), ())) == "subjects/:.c:"
    assert place_of(ConfigPut(NAME(""), None)) == "configs/:.:"


@pytest.mark.parametrize(
    "value",
    [b"", b"x", b"1", b"{}", b'{"format":"1"}', b'{"format":1}', b'{"format":1,"versions":1}'],
)
def test_a_damaged_record_is_reported(value: bytes) -> None:
    """With its place."""
    with pytest.raises(BrokenInvariantError) as caught:
        change_of("subjects/:.:s", value)
    assert caught.value.place == "subjects/:.:s"


def test_a_schema_is_never_removed() -> None:
    """No change removes one."""
    with pytest.raises(BrokenInvariantError, match="gone"):
        change_of("contents/x", None)


def test_a_newer_format_is_refused() -> None:
    """It is not damaged: another version of the program wrote it."""
    with pytest.raises(RefusedError, match="format 2"):
        change_of("modes/:.:s", b'{"format":2}')


def test_a_revision_contains_the_last_steps() -> None:
    """Each place once; a reader too far behind gets None."""
    revision = Revision()
    for number in range(1, 100):
        revision = revision.next((f"subjects/{number}", "modes/m"))
    assert revision_of(revision_bytes(revision), "revision") == revision
    assert revision.since(99) == ()
    assert revision.since(97) == ("subjects/98", "modes/m", "subjects/99")
    assert len(revision.since(99 - STEPS_MAX) or ()) == STEPS_MAX + 1
    assert revision.since(98 - STEPS_MAX) is None
    assert revision.since(100) is None
    assert Revision().since(0) == ()


def test_a_revision_is_bounded() -> None:
    """It is written with every step: a reader of an older one reads everything."""
    revision = Revision()
    for _ in range(STEPS_MAX):
        revision = revision.next(tuple(f"subjects/{n:0200}" for n in range(128)))
        assert len(revision_bytes(revision)) < 2 * STEPS_CHARS_MAX < MAX_STEP_BYTES // 8
    assert revision.since(revision.number - 1) is not None
    revision = revision.next(("x" * (STEPS_CHARS_MAX + 1),))
    assert revision.steps == ()
    assert revision.since(revision.number - 1) is None
    assert revision.since(revision.number) == ()
