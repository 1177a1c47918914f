from typing import Any

import pytest

from schemas.compatibility import Level
from schemas.registry.config import (
    DEFAULT_CONFIG,
    Config,
    Mode,
    changed,
    config_json,
    level_of,
    mode_of,
)
from schemas.registry.metadata import Metadata
from schemas.registry.refused import BadBodyError, BadLevelError, BadModeError, BadRulesError

FULL: dict[str, Any] = {
    "alias": "a",
    "normalize": True,
    "validateFields": False,
    "validateNewSchemas": True,
    "validateRules": True,
    "compatibility": "FULL",
    "compatibilityPolicy": "LENIENT",
    "compatibilityGroup": "g",
    "defaultMetadata": {"properties": {"a": "b"}},
    "overrideMetadata": {},
    "defaultRuleSet": {"domainRules": [{"name": "r", "type": "T"}]},
    "overrideRuleSet": {},
}


def test_a_configuration_round_trips() -> None:
    """Every field, in its place; false and empty metadata are values."""
    made = changed(Config(), FULL)
    assert changed(Config(), config_json(made, "compatibility")) == made
    assert list(config_json(made)) == [
        "compatibilityLevel" if key == "compatibility" else key for key in FULL
    ]
    assert config_json(Config()) == {}


@pytest.mark.parametrize("key", FULL)
def test_a_change_keeps_clears_or_sets(key: str) -> None:
    """An omitted field stays; null clears that field only."""
    full = changed(Config(), FULL)
    assert changed(full, {}) == full
    assert changed(full, {"compatibilityLevel": "NONE", "other": 1}) == full
    left = {name: one for name, one in FULL.items() if name != key}
    assert changed(full, {key: None}) == changed(Config(), left)


@pytest.mark.parametrize("key", ["alias", "compatibilityPolicy", "compatibilityGroup"])
def test_an_empty_text_clears(key: str) -> None:
    """So that every server reads the same stored value."""
    assert changed(changed(Config(), FULL), {key: ""}) == changed(
        changed(Config(), FULL), {key: None}
    )


@pytest.mark.parametrize(
    ("body", "error", "number"),
    [
        ({"compatibility": "sideways"}, BadLevelError, 42203),
        ({"compatibility": 1}, BadLevelError, 42203),
        ({"normalize": "yes"}, BadBodyError, 400),
        ({"alias": 1}, BadBodyError, 400),
        ({"defaultMetadata": 1}, BadBodyError, 400),
        ({"overrideRuleSet": {"domainRules": [{"name": "r"}]}}, BadRulesError, 42210),
    ],
)
def test_an_invalid_configuration_is_refused(
    body: dict[str, Any], error: type[BadBodyError], number: int
) -> None:
    """With its code."""
    with pytest.raises(error) as caught:
        changed(Config(), body)
    assert caught.value.number == number


def test_names_of_levels_and_modes_are_case_insensitive() -> None:
    """And others are refused."""
    assert level_of("full_Transitive") is Level.FULL_TRANSITIVE
    assert mode_of("ReadOnly_override") is Mode.READONLY_OVERRIDE
    with pytest.raises(BadModeError) as caught:
        mode_of("sometimes")
    assert caught.value.number == 42204
    with pytest.raises(BadLevelError):
        level_of(5)


def test_a_narrow_scope_overrides_a_wide_one() -> None:
    """Field by field, except for an alias."""
    wide = Config(alias="w", level=Level.FULL, group="g", default_metadata=Metadata())
    over = Config(level=Level.NONE, normalize=False).over(wide).over(DEFAULT_CONFIG)
    assert over == Config(level=Level.NONE, normalize=False, group="g", default_metadata=Metadata())
