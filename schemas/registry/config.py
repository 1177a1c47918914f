"""Configuration of subjects, contexts and the whole registry. Pure.

Every field may be unset; then that of the next wider scope applies (`scopes.py`). Names and layout
are Confluent's: the level is `compatibilityLevel` in answers, `compatibility` in requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Final

from schemas.compatibility import Level
from schemas.json_value import Json, JsonObject
from schemas.registry.metadata import (
    Metadata,
    RuleSet,
    metadata_json,
    metadata_of,
    rules_json,
    rules_of,
)
from schemas.registry.refused import BadBodyError, BadLevelError, BadModeError


class Mode(Enum):
    """Mode of a scope: the allowed changes of its schemas."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    """No registrations, deletions or configuration changes."""
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """The same; set for the whole registry, no narrower scope overrides it."""
    IMPORT = "IMPORT"
    """Schemas are registered with given ids, without compatibility checks."""
    FORWARD = "FORWARD"
    """As `IMPORT`."""

    @property
    def read_only(self) -> bool:
        """Whether no change is allowed."""
        return self in {Mode.READONLY, Mode.READONLY_OVERRIDE}

    @property
    def takes_ids(self) -> bool:
        """Whether schemas are registered with given ids."""
        return self in {Mode.IMPORT, Mode.FORWARD}


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of one scope; None: not set here."""

    alias: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new: bool | None = None
    validate_rules: bool | None = None
    level: Level | None = None
    policy: str | None = None
    group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rules: RuleSet | None = None
    override_rules: RuleSet | None = None

    def over(self, wider: "Config") -> "Config":
        """This configuration, with unset fields from a wider scope."""
        unset = {f.name for f in fields(self) if getattr(self, f.name) is None}
        return replace(self, **{name: getattr(wider, name) for name in unset - {"alias"}})


DEFAULT_CONFIG: Final = Config(level=Level.BACKWARD)
DEFAULT_MODE: Final = Mode.READWRITE


def mode_of(value: Json) -> Mode:
    """A mode by its name, case-insensitive.

    Raises:
        BadModeError: there is no such mode.
    """
    try:
        return Mode(str(value).upper())
    except ValueError:
        raise BadModeError from None


def level_of(value: Json) -> Level:
    """A level by its name, case-insensitive.

    Raises:
        BadLevelError: there is no such level.
    """
    try:
        return Level(str(value).upper())
    except ValueError:
        raise BadLevelError from None


def changed(config: Config, body: Mapping[str, Json]) -> Config:
    """A configuration after a change: missing keys are unchanged, null or empty texts unset fields.

    Raises:
        BadLevelError: there is no such level.
        BadRulesError: a rule is invalid.
        BadBodyError: a value has the wrong type.
    """
    level = config.level
    if "compatibility" in body:
        given = body["compatibility"]
        level = None if given is None else level_of(given)
    return replace(
        config,
        level=level,
        normalize=_flag(body, "normalize", config.normalize),
        validate_fields=_flag(body, "validateFields", config.validate_fields),
        validate_new=_flag(body, "validateNewSchemas", config.validate_new),
        validate_rules=_flag(body, "validateRules", config.validate_rules),
        alias=_text(body, "alias", config.alias),
        policy=_text(body, "compatibilityPolicy", config.policy),
        group=_text(body, "compatibilityGroup", config.group),
        default_metadata=_metadata(body, "defaultMetadata", config.default_metadata),
        override_metadata=_metadata(body, "overrideMetadata", config.override_metadata),
        default_rules=_rules(body, "defaultRuleSet", config.default_rules),
        override_rules=_rules(body, "overrideRuleSet", config.override_rules),
    )


def _flag(body: Mapping[str, Json], key: str, before: bool | None) -> bool | None:  # noqa: FBT001 - it is a value
    value = body.get(key, before)
    if value is not None and not isinstance(value, bool):
        raise BadBodyError(f"{key} is not a boolean")
    return value


def _text(body: Mapping[str, Json], key: str, before: str | None) -> str | None:
    value = body.get(key, before)
    if value is not None and not isinstance(value, str):
        raise BadBodyError(f"{key} is not a text")
    return value or None


def _metadata(body: Mapping[str, Json], key: str, before: Metadata | None) -> Metadata | None:
    return metadata_of(body[key]) if key in body else before


def _rules(body: Mapping[str, Json], key: str, before: RuleSet | None) -> RuleSet | None:
    return rules_of(body[key]) if key in body else before


def config_json(config: Config, level_key: str = "compatibilityLevel") -> JsonObject:
    """The JSON of a configuration, without unset fields."""
    made: JsonObject = {
        "alias": config.alias,
        "normalize": config.normalize,
        "validateFields": config.validate_fields,
        "validateNewSchemas": config.validate_new,
        "validateRules": config.validate_rules,
        level_key: config.level.value if config.level else None,
        "compatibilityPolicy": config.policy,
        "compatibilityGroup": config.group,
    }
    layers = (("default", config.default_metadata), ("override", config.override_metadata))
    for word, metadata in layers:
        made[f"{word}Metadata"] = None if metadata is None else metadata_json(metadata)
    for word, rules in (("default", config.default_rules), ("override", config.override_rules)):
        made[f"{word}RuleSet"] = None if rules is None else rules_json(rules)
    return {key: one for key, one in made.items() if one not in (None, "")}
