from typing import Any

import pytest

from schemas.json_value import Json
from schemas.registry.metadata import (
    Metadata,
    Rule,
    RuleSet,
    merged_metadata,
    merged_rules,
    metadata_bytes,
    metadata_json,
    metadata_of,
    rules_bytes,
    rules_json,
    rules_of,
)
from schemas.registry.refused import BadBodyError, BadRulesError

FULL: dict[str, Any] = {
    "tags": {"b": ["z", "a", "z"], "a": ["t"]},
    "properties": {"q": "1", "p": "2"},
    "sensitive": ["p", "o"],
}


def _rule(**more: Any) -> dict[str, Any]:
    return {"name": "r", "type": "T", **more}


def test_metadata_are_sorted() -> None:
    """Keys, sets and bytes are independent of the order in the request."""
    metadata = metadata_of(FULL)
    assert metadata is not None
    assert metadata_json(metadata) == {
        "tags": {"a": ["t"], "b": ["a", "z"]},
        "properties": {"p": "2", "q": "1"},
        "sensitive": ["o", "p"],
    }
    assert b"".join(metadata_bytes(metadata)) == b"\x01atbazp2q1op"
    assert metadata_of(metadata_json(metadata)) == metadata


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None),
        ({}, Metadata()),
        ({"properties": None, "other": 1}, Metadata()),
        ({"properties": {"a": 1, "b": True}}, Metadata((), (("a", "1"), ("b", "true")))),
    ],
)
def test_metadata_may_be_sparse(value: Json, read: Metadata | None) -> None:
    """None is not the same as empty; scalars become texts."""
    assert metadata_of(value) == read


@pytest.mark.parametrize(
    "value",
    [
        1,
        [],
        {"tags": 1},
        {"tags": {"a": "t"}},
        {"properties": []},
        {"properties": {"a": None}},
        {"sensitive": [{}]},
    ],
)
def test_metadata_of_another_form_are_refused(value: Json) -> None:
    """The response contains the place."""
    with pytest.raises(BadBodyError, match="metadata"):
        metadata_of(value)


def test_properties_can_be_read_and_changed() -> None:
    """Reserved names are a list in one property."""
    metadata = Metadata().with_property("confluent:reserved", " a, ,b ")
    assert metadata.reserved == ("a", "b")
    assert metadata.get("other") is None
    assert metadata.with_property("confluent:reserved", None) == Metadata()


def test_rules_have_defaults_and_an_order_of_bytes() -> None:
    """Omitted fields are not in the bytes; a disabled rule has one more."""
    rules = rules_of({"domainRules": [_rule(doc="", tags=["b", "a"], params={"k": "v"})]})
    assert rules is not None
    assert rules.lists[1] == (Rule("r", type="T", tags=("a", "b"), params=(("k", "v"),)),)
    assert b"".join(rules_bytes(rules)) == b"\x01rTRANSFORMWRITEREADTabkv"
    off = rules_of({"migrationRules": [_rule(disabled=True, mode="UPGRADE", expr="e")]})
    assert off is not None
    assert b"".join(rules_bytes(off)) == b"\x01rTRANSFORMUPGRADETe\x01"
    assert rules_json(off) == {
        "migrationRules": [
            {
                "name": "r",
                "kind": "TRANSFORM",
                "mode": "UPGRADE",
                "type": "T",
                "expr": "e",
                "disabled": True,
            }
        ]
    }
    assert rules_of(rules_json(rules)) == rules


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"domainRules": [_rule(), _rule()]}, "Found rule with duplicate name 'r'"),
        (
            {"domainRules": [_rule()], "encodingRules": [_rule()]},
            "Found rule with duplicate name 'r'",
        ),
        ({"domainRules": [{"type": "T"}]}, "Missing rule name"),
        ({"domainRules": [_rule(name="")]}, "Empty rule name"),
        ({"domainRules": [_rule(name="a" * 65)]}, "Rule name too long"),
        ({"domainRules": [_rule(name="1a")]}, "Illegal initial character in rule name: 1a"),
        ({"domainRules": [_rule(name="a.b")]}, "Illegal character in rule name: a.b"),
        ({"domainRules": [{"name": "r"}]}, "Missing rule type"),
        ({"domainRules": [_rule(type="")]}, "Missing rule type"),
        (
            {"domainRules": [_rule(mode="WRITE", onSuccess="A,B")]},
            "Multiple actions only valid with WRITEREAD and UPDOWN",
        ),
        (
            {"migrationRules": [_rule()]},
            "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN",
        ),
        (
            {"domainRules": [_rule(mode="UPGRADE")]},
            "Domain rules can only be WRITE, READ, WRITEREAD",
        ),
        (
            {"encodingRules": [_rule(mode="UPDOWN")]},
            "Encoding rules can only be WRITE, READ, WRITEREAD",
        ),
    ],
)
def test_rules_are_validated(value: Json, told: str) -> None:
    """The code is 42210 and the text is that of other registries."""
    with pytest.raises(BadRulesError) as caught:
        rules_of(value)
    assert (caught.value.number, caught.value.message) == (42210, told)


@pytest.mark.parametrize(
    "value",
    [
        1,
        {"domainRules": {}},
        {"domainRules": [1]},
        {"domainRules": [_rule(kind="X")]},
        {"domainRules": [_rule(mode="X")]},
        {"domainRules": [_rule(params=[])]},
    ],
)
def test_rules_of_another_form_are_refused(value: Json) -> None:
    """These are errors of the body, not of a rule."""
    with pytest.raises(BadBodyError, match="ruleSet"):
        rules_of(value)


def test_metadata_merge_key_by_key() -> None:
    """The last layer wins; sensitive names are united."""
    low = metadata_of(
        {"tags": {"a": ["1"]}, "properties": {"p": "1", "q": "1"}, "sensitive": ["p"]}
    )
    high = metadata_of({"tags": {"a": ["2"]}, "properties": {"q": "2"}, "sensitive": ["q"]})
    assert merged_metadata(None, None) is None
    assert merged_metadata(low, None, high) == metadata_of(
        {"tags": {"a": ["2"]}, "properties": {"p": "1", "q": "2"}, "sensitive": ["p", "q"]}
    )


def test_rules_merge_by_name() -> None:
    """A rule replaces the one of its name, in whatever list that was; new ones come last."""
    low = rules_of({"domainRules": [_rule(name="a"), _rule(name="b")], "enableAt": "x"})
    high = rules_of({"domainRules": [_rule(name="c")], "encodingRules": [_rule(name="a")]})
    assert merged_rules(None) is None
    merged = merged_rules(low, None, high)
    assert merged is not None
    assert [[one.name for one in some] for some in merged.lists] == [[], ["b", "c"], ["a"]]
    assert merged.enable_at == "x"
    assert merged_rules(low) == low
    assert RuleSet() == rules_of({})
