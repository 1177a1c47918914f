"""Deletion of versions and subjects: soft, which hides a version, then permanent. Pure."""

from dataclasses import replace

from schemas.registry.lookup import numbered, referrers, visible
from schemas.registry.names import SubjectName
from schemas.registry.refused import (
    NoSubjectError,
    NoVersionError,
    ReferenceExistsError,
    SubjectDeletedError,
    SubjectNotDeletedError,
    VersionDeletedError,
    VersionNotDeletedError,
)
from schemas.registry.scopes import check_writable
from schemas.registry.state import Change, ConfigPut, ModePut, State, SubjectPut, Versions


def delete_version(
    state: State, name: SubjectName, number: int, *, permanent: bool, now_ms: int
) -> tuple[int, tuple[Change, ...]]:
    """Delete one version, -1 for the latest; returns its number and the changes.

    Raises:
        NoSubjectError, NoVersionError: it does not exist.
        VersionDeletedError, VersionNotDeletedError: it is soft-deleted already; it has to be first.
        NotPermittedError: the subject is read-only.
        ReferenceExistsError: another schema refers to it.
    """
    one = numbered(state, name, number, deleted=True)
    if one is not None and one.deleted and not permanent:
        raise VersionDeletedError(name, number)
    if one is None:
        visible(state, name, deleted=True)
        raise NoVersionError(number)
    check_writable(state, name)
    if referrers(state, name, one.number, deleted=permanent):
        raise ReferenceExistsError(name, one.number)
    if permanent and not one.deleted:
        raise VersionNotDeletedError(name, number)
    versions = state.versions(name, deleted=True)
    if permanent:
        left = tuple(v for v in versions if v.number != one.number)
        return one.number, _left(state, name, left)
    gone = replace(one, deleted=True, at_ms=now_ms)
    changed = tuple(gone if v.number == one.number else v for v in versions)
    return one.number, (SubjectPut(name, changed),)


def delete_subject(
    state: State, name: SubjectName, *, permanent: bool, now_ms: int
) -> tuple[tuple[int, ...], tuple[Change, ...]]:
    """Delete all versions of a subject; returns their numbers and the changes.

    Raises:
        NoSubjectError: it does not exist.
        SubjectDeletedError, SubjectNotDeletedError: it is soft-deleted already; it has to be first.
        NotPermittedError: the subject is read-only.
        ReferenceExistsError: a schema of another subject refers to one of them.
    """
    versions = state.versions(name, deleted=True)
    if not versions:
        raise NoSubjectError(name)
    live = state.versions(name)
    if not permanent and not live:
        raise SubjectDeletedError(name)
    check_writable(state, name)
    for one in versions if permanent else live:
        others = referrers(state, name, one.number, deleted=permanent)
        if any(other != name for other, _ in others):
            raise ReferenceExistsError(name, one.number)
        if permanent and not one.deleted:
            raise SubjectNotDeletedError(name)
    if permanent:
        return tuple(v.number for v in versions), _left(state, name, ())
    gone = tuple(v if v.deleted else replace(v, deleted=True, at_ms=now_ms) for v in versions)
    return tuple(v.number for v in live), (SubjectPut(name, gone),)


def _left(state: State, name: SubjectName, versions: Versions) -> tuple[Change, ...]:
    """The changes that leave these versions; the last version is removed with the settings."""
    changes: list[Change] = [SubjectPut(name, versions)]
    if not versions and name in state.configs:
        changes.append(ConfigPut(name, None))
    if not versions and name in state.modes:
        changes.append(ModePut(name, None))
    return tuple(changes)
