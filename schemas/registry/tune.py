"""Changes of configurations and modes, and deletion of contexts. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from schemas.json_value import Json
from schemas.registry.config import DEFAULT_CONFIG, DEFAULT_MODE, Config, Mode, changed
from schemas.registry.names import GLOBAL, SubjectName, may_be_configured
from schemas.registry.refused import (
    BadSubjectError,
    ContextNotEmptyError,
    NoConfigError,
    NoModeError,
    NoSubjectError,
    NotPermittedError,
    ReferenceExistsError,
)
from schemas.registry.scopes import check_writable, config_in_force, mode_in_force
from schemas.registry.state import Change, ConfigPut, ModePut, State, SubjectPut


def set_config(
    state: State, name: SubjectName, body: Mapping[str, Json]
) -> tuple[Config, tuple[Change, ...]]:
    """Change a configuration; returns the whole configuration and the changes.

    Raises:
        BadSubjectError: this name cannot have a configuration.
        BadLevelError, BadRulesError, BadBodyError: a new value is invalid.
        NotPermittedError: the scope is read-only.
    """
    made = changed(state.configs.get(name, Config()), body)
    check_name(name)
    check_writable(state, name)
    return made, (ConfigPut(name, made),)


def config_of(state: State, name: SubjectName, *, in_force: bool) -> Config:
    """The configuration of a name itself, or the effective one.

    Raises:
        NoConfigError: it has none of its own.
    """
    if in_force:
        return config_in_force(state, name)
    own = state.configs.get(name)
    if own is None and not name.is_default:
        raise NoConfigError(name)
    own = own or Config()
    return own if own.level else replace(own, level=DEFAULT_CONFIG.level)


def delete_config(state: State, name: SubjectName) -> tuple[Config, tuple[Change, ...]]:
    """Remove a configuration; returns the removed one.

    Raises:
        NoSubjectError: there is none.
        NotPermittedError: the scope is read-only.
    """
    own = state.configs.get(name)
    if own is None and not name.is_default:
        raise NoSubjectError(name)
    check_writable(state, name)
    return own or DEFAULT_CONFIG, (ConfigPut(name, None),) if own else ()


def mode_of_name(state: State, name: SubjectName, *, in_force: bool) -> Mode:
    """The mode of a name itself, or the effective one.

    Raises:
        NoModeError: it has none of its own.
    """
    if in_force:
        return mode_in_force(state, name)
    own = state.modes.get(name)
    if own is None and not name.is_default:
        raise NoModeError(name)
    return own or DEFAULT_MODE


def set_mode(
    state: State, name: SubjectName, mode: Mode | None, *, force: bool
) -> tuple[Change, ...]:
    """Set or remove a mode.

    Raises:
        BadSubjectError: this name cannot have a mode.
        NotPermittedError: mode IMPORT, and the scope has schemas.
        ReferenceExistsError: mode IMPORT, and other schemas refer to deleted ones of the scope.
    """
    check_name(name)
    importing = mode is Mode.IMPORT and mode_in_force(state, name) is not Mode.IMPORT
    emptied = _emptied(state, name) if importing and not force else ()
    return (*emptied, ModePut(name, mode))


def delete_mode(
    state: State, name: SubjectName, *, recursive: bool
) -> tuple[Mode | None, tuple[Change, ...]]:
    """Remove a mode; returns the removed one.

    Args:
        state: the registry.
        name: the scope.
        recursive: for a context: the modes of all its subjects, too.

    Raises:
        NoSubjectError: there is none.
    """
    own = state.modes.get(name)
    inner: tuple[Change, ...] = ()
    if recursive and not name.subject:
        below = [n for n in state.modes if n.context == name.context and n.subject]
        inner = tuple(ModePut(n, None) for n in below)
    if own is None:
        if name.is_default and not recursive:
            return DEFAULT_MODE, ()
        if not (recursive and not name.subject):
            raise NoSubjectError(name)
        return None, inner
    return own, (ModePut(name, None), *inner)


def check_empty(state: State, name: SubjectName) -> None:
    """Check that a context has no subjects, deleted or not.

    Raises:
        ContextNotEmptyError: it has subjects.
    """
    if any(one.context == name.context for one in state.subjects):
        raise ContextNotEmptyError(name.whole_context)


def check_name(name: SubjectName) -> None:
    """Check that a name can be configured.

    Raises:
        BadSubjectError: it cannot.
    """
    if not may_be_configured(name):
        raise BadSubjectError(name)


def _emptied(state: State, name: SubjectName) -> tuple[Change, ...]:
    """The changes that remove deleted versions of a scope, so that their ids can be imported."""
    below = [one for one in state.subjects if _within(one, name)]
    if any(state.versions(one) for one in below):
        raise NotPermittedError("Cannot import since found existing subjects")
    for one in below:
        for version in state.versions(one, deleted=True):
            others = state.referrers.get((one, version.number), frozenset())
            if any(not _within(other, name) for other, _ in others):
                raise ReferenceExistsError(one, version.number)
    return tuple(SubjectPut(one, ()) for one in below)


def _within(one: SubjectName, scope: SubjectName) -> bool:
    if scope.subject:
        return one == scope
    return scope.context in (GLOBAL, one.context)
