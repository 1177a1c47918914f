"""Requests to show, set or reset the level or mode of a scope: all subjects, or one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.errors import UsageError
from schemas.json_value import Json


@dataclass(frozen=True, slots=True)
class ScopeRequest:
    """Request to show, set or reset a level or mode.

    Args:
        scope: a subject; None: the general setting, for subjects without their own.
        word: the new level or mode, in capitals; None: only show it.
        reset: whether the subject's own settings are removed.
    """

    scope: str | None
    word: str | None
    reset: bool

    @property
    def place(self) -> str:
        """The scope in words."""
        return self.scope if self.scope is not None else "all subjects without one of their own"


def parse_request(
    arguments: tuple[str, ...], words: list[str], *, general: bool, reset: bool
) -> ScopeRequest:
    """Request of the arguments `[SUBJECT] [WORD]`, `--general` and `--reset`.

    Raises:
        UsageError: the arguments are invalid or ambiguous.
    """
    rest = list(arguments)
    scope = None if general or not rest else rest.pop(0)
    if scope is not None and not rest and not reset and scope.upper() in words:
        raise UsageError(
            f"{scope} is a word to set, not a subject",
            hint=f"`--general {scope}` sets it for subjects without their own; "
            f"`SUBJECT {scope}` for one subject.",
        )
    word = rest.pop(0).upper() if rest else None
    if rest or (reset and word is not None):
        raise UsageError(f"{' '.join(arguments)}: that is more than can be done at once")
    if word is not None and word not in words:
        raise UsageError(f"{word} is none of {', '.join(words)}")
    if reset and scope is None:
        raise UsageError("--reset needs a SUBJECT", hint="set the general setting instead.")
    return ScopeRequest(scope, word, reset)


def apply(
    request: ScopeRequest, own: str | None, set_to: Callable[[str], None], reset: Callable[[], None]
) -> bool:
    """Perform a request; return whether anything changed."""
    if request.reset and own is not None:
        reset()
        return True
    if request.word is not None and request.word != own:
        set_to(request.word)
        return True
    return False


def as_text(
    request: ScopeRequest, setting: str, own: str | None, in_force: str, *, changed: bool
) -> str:
    """The current setting as a sentence."""
    origin = "its own" if own is not None else "as for all"
    end = "" if request.scope is None else f" ({origin})"
    if changed:
        return f"{request.place}: {setting} is now {in_force}{end}"
    already = " already" if request.word is not None or request.reset else ""
    return f"{request.place}: {setting} is {in_force}{already}{end}"


def as_data(
    request: ScopeRequest, setting: str, own: str | None, in_force: str, *, changed: bool
) -> Mapping[str, Json]:
    """The current setting as data."""
    return {"subject": request.scope, setting: in_force, "own": own, "changed": changed}
