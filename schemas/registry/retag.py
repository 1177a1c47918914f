"""Tag changes of a version, registered as the next version of its subject. Pure."""

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
    """Differences between a version and the next one.

    Args:
        add: tags to add.
        remove: tags to remove.
        metadata: None: those of the version.
        rules: None: those of the previous version.
        merge: rules to merge into those of the previous version.
        drop: names of rules to remove from them.
        number: the required number of the next version; 0: not given.
    """

    add: Tags = ()
    remove: Tags = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    merge: RuleSet | None = None
    drop: tuple[str, ...] = ()
    number: int = 0


def tagged_version(state: State, name: SubjectName, number: int) -> Found:
    """The version whose tags change, without a search in other contexts.

    Raises:
        BadSubjectError: the name is not valid for a subject.
        NoSubjectError, NoVersionError: it does not exist.
    """
    if not may_hold_schemas(name):
        raise BadSubjectError(name)
    return own_version(state, name, number)


def retag(
    state: State, name: SubjectName, one: Found, request: Retagging, *, now_ms: int
) -> Registered:
    """Register a version with other tags.

    Raises:
        BadSchemaError: a path of a tag does not exist in it, or the number is not the next.
        RegistryRefusal: as `register`.
    """
    metadata = request.metadata if request.metadata is not None else one.content.metadata
    versioned = (metadata or Metadata()).with_property(VERSION_PROPERTY, str(request.number))
    sent = Sent(
        with_tags(one.content.text, request.add, request.remove),
        one.content.references,
        versioned,
        _rules(state, name, request),
        request.number,
    )
    return register(state, name, sent, normal=False, now_ms=now_ms)


def _rules(state: State, name: SubjectName, request: Retagging) -> RuleSet | None:
    if request.merge is None and not request.drop:
        return request.rules
    last = numbered(state, name, request.number - 1 if request.number else LATEST)
    rules = merged_rules(state.content(last.guid).rules if last else None, request.merge)
    return rules and replace(rules, lists=without_rules(rules, request.drop))
