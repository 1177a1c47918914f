"""A version with other tags, as the next version of its subject. Pure."""

from dataclasses import dataclass, replace

from schemas.registry.lookup import Found, numbered, own_version
from schemas.registry.metadata import (
    VERSION_PROPERTY,
    Metadata,
    RuleSet,
    merged_rules,
    without_rules,
)
from schemas.registry.names import SubjectName, may_hold_schemas
from schemas.registry.prepare import LATEST, Sent
from schemas.registry.refused import BadSubjectError
from schemas.registry.register import Registered, register
from schemas.registry.state import State
from schemas.registry.tags import Tags, with_tags


@dataclass(frozen=True, slots=True)
class Retagging:
    """What the next version has that one before it has not.

    Args:
        add: tags that are added.
        remove: tags that are removed.
        metadata: None: those of the version.
        rules: None: those of the version before.
        merge: rules that are put over those of the version before.
        drop: names of rules that are left out of them.
        number: what the next version has to be; 0: not given.
    """

    add: Tags = ()
    remove: Tags = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    merge: RuleSet | None = None
    drop: tuple[str, ...] = ()
    number: int = 0


def tagged_version(state: State, name: SubjectName, number: int) -> Found:
    """The version whose tags are to be changed: of this very subject, not of another context's.

    Raises:
        BadSubjectError: no subject can have this name.
        NoSubjectError, NoVersionError: there is none.
    """
    if not may_hold_schemas(name):
        raise BadSubjectError(name)
    return own_version(state, name, number)


def retag(
    state: State, name: SubjectName, one: Found, wanted: Retagging, *, now_ms: int
) -> Registered:
    """Register a version with other tags.

    Raises:
        BadSchemaError: nothing in it has such a path, or the number is not the next.
        RegistryRefusal: as `register`.
    """
    metadata = wanted.metadata if wanted.metadata is not None else one.content.metadata
    told = (metadata or Metadata()).with_property(VERSION_PROPERTY, str(wanted.number))
    sent = Sent(
        with_tags(one.content.text, wanted.add, wanted.remove),
        one.content.references,
        told,
        _rules(state, name, wanted),
        wanted.number,
    )
    return register(state, name, sent, normal=False, now_ms=now_ms)


def _rules(state: State, name: SubjectName, wanted: Retagging) -> RuleSet | None:
    if wanted.merge is None and not wanted.drop:
        return wanted.rules
    last = numbered(state, name, wanted.number - 1 if wanted.number else LATEST)
    rules = merged_rules(state.content(last.guid).rules if last else None, wanted.merge)
    return rules and replace(rules, lists=without_rules(rules, wanted.drop))
