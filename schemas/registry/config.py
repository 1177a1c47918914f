"""What may be configured for subjects, contexts and all of a registry. Pure.

Every field may be unset; then the next wider scope decides (`scopes.py`). Names and layout are
Confluent's: answers call the level `compatibilityLevel`, changes call it `compatibility`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Final

from schemas.compatibility import Level
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
    """What may be done with the schemas of a scope."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    """Nothing is registered, deleted or configured."""
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """The same; set for the whole registry, no narrower scope can lift it."""
    IMPORT = "IMPORT"
    """Schemas come with their ids, and are not compared with others."""
    FORWARD = "FORWARD"
    """As `IMPORT`."""

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed."""
        return self in {Mode.READONLY, Mode.READONLY_OVERRIDE}

    @property
    def takes_ids(self) -> bool:
        """Whether schemas come with their ids."""
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
        """This one, with what it leaves open taken from a wider scope."""
        open_here = {f.name for f in fields(self) if getattr(self, f.name) is None}
        return replace(self, **{name: getattr(wider, name) for name in open_here - {"alias"}})


DEFAULT_CONFIG: Final = Config(level=Level.BACKWARD)
DEFAULT_MODE: Final = Mode.READWRITE
_FLAGS: Final = {
    "normalize": "normalize",
    "validateFields": "validate_fields",
    "validateNewSchemas": "validate_new",
    "validateRules": "validate_rules",
}
_TEXTS: Final = {"alias": "alias", "compatibilityPolicy": "policy", "compatibilityGroup": "group"}
_METADATA: Final = {
    "defaultMetadata": "default_metadata",
    "overrideMetadata": "override_metadata",
}
_RULES: Final = {"defaultRuleSet": "default_rules", "overrideRuleSet": "override_rules"}


def mode_of(value: object) -> Mode:
    """A mode by its name, in any case of letters.

    Raises:
        BadModeError: there is none of this name.
    """
    try:
        return Mode(str(value).upper())
    except ValueError:
        raise BadModeError from None


def level_of(value: object) -> Level:
    """A level by its name, in any case of letters.

    Raises:
        BadLevelError: there is none of this name.
    """
    try:
        return Level(str(value).upper())
    except ValueError:
        raise BadLevelError from None


def changed(config: Config, body: Mapping[str, Any]) -> Config:
    """A configuration after a change: what a body leaves out stays, null or an empty text clears.

    Raises:
        BadLevelError: there is no such level.
        BadRulesError: a rule breaks a rule of rules.
        BadBodyError: a value has another type than it should.
    """
    made: dict[str, Any] = {}
    if "compatibility" in body:
        level = body["compatibility"]
        made["level"] = None if level is None else level_of(level)
    for key, name in _FLAGS.items():
        if key in body:
            made[name] = _checked(body[key], bool, key)
    for key, name in _TEXTS.items():
        if key in body:
            made[name] = _checked(body[key], str, key) or None
    for key, name in _METADATA.items():
        if key in body:
            made[name] = metadata_of(body[key])
    for key, name in _RULES.items():
        if key in body:
            made[name] = rules_of(body[key])
    return replace(config, **made)


def _checked(value: object, wanted: type, key: str) -> object:
    if value is not None and not isinstance(value, wanted):
        raise BadBodyError(f"{key} is not a {'boolean' if wanted is bool else 'text'}")
    return value


def config_json(config: Config, level_key: str = "compatibilityLevel") -> dict[str, Any]:
    """A configuration in a body; what is not set is left out."""
    names = {
        "alias": config.alias,
        "normalize": config.normalize,
        "validateFields": config.validate_fields,
        "validateNewSchemas": config.validate_new,
        "validateRules": config.validate_rules,
        level_key: config.level.value if config.level else None,
        "compatibilityPolicy": config.policy,
        "compatibilityGroup": config.group,
    }
    made: dict[str, Any] = {key: one for key, one in names.items() if one not in (None, "")}
    for keys, to_json in ((_METADATA, metadata_json), (_RULES, rules_json)):
        for key, name in keys.items():
            if getattr(config, name) is not None:
                made[key] = to_json(getattr(config, name))
    return made
