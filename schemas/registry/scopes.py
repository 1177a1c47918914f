"""Effective configuration and mode of a name. Pure.

The scopes from narrow to wide are the subject; its context (for the default context: the settings
of the whole registry); `:.__GLOBAL:`, for all contexts; the defaults. Each field of a configuration
comes from the narrowest scope that sets it, and so does the mode; but no scope overrides
`READONLY_OVERRIDE` of the whole registry.
"""

from schemas.registry.config import DEFAULT_CONFIG, DEFAULT_MODE, Config, Mode
from schemas.registry.names import DEFAULT, GLOBAL, SubjectName
from schemas.registry.refused import NotPermittedError
from schemas.registry.state import State

ROOT = SubjectName(DEFAULT, "")
EVERYWHERE = SubjectName(GLOBAL, "")


def scopes(name: SubjectName) -> tuple[SubjectName, ...]:
    """The scopes of a name, the narrowest first."""
    return tuple(dict.fromkeys((name, name.whole_context, EVERYWHERE)))


def config_in_force(state: State, name: SubjectName) -> Config:
    """The effective configuration of a name."""
    made = state.configs.get(name, Config())
    for scope in scopes(name)[1:]:
        made = made.over(state.configs.get(scope, Config()))
    return made.over(DEFAULT_CONFIG)


def mode_in_force(state: State, name: SubjectName) -> Mode:
    """The effective mode of a name."""
    for everywhere in (ROOT, EVERYWHERE):
        if state.modes.get(everywhere) is Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
    return next((state.modes[s] for s in scopes(name) if s in state.modes), DEFAULT_MODE)


def check_writable(state: State, name: SubjectName) -> None:
    """Check that a scope may be changed.

    Raises:
        NotPermittedError: it is read-only.
    """
    if mode_in_force(state, name).read_only:
        raise NotPermittedError(f"Subject {in_context(name)} is in read-only mode")


def in_context(name: SubjectName) -> str:
    """A name and its context, in the form of error messages about modes."""
    subject = "null" if name.is_default else str(name)
    return f"{subject} in context {name.prefix}"


def aliased(state: State, name: SubjectName) -> SubjectName:
    """Resolve an alias, once: an alias of an alias is not followed."""
    own = state.configs.get(name)
    return name.resolve(own.alias) if own is not None and own.alias else name
