"""What `medusa schema level` and `mode` have in common: a scope, and a word that may be set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.errors import UsageError
from schemas.json_value import Json


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed.

    Args:
        scope: a subject; None: what holds where a subject has nothing of its own.
        word: what is to be set, in capitals; None: only show it.
        reset: whether what the subject has of its own is to be taken back.
    """

    scope: str | None
    word: str | None
    reset: bool

    @property
    def place(self) -> str:
        """The scope in words."""
        return self.scope if self.scope is not None else "all subjects without one of their own"


def wish(arguments: tuple[str, ...], words: list[str], *, everywhere: bool, reset: bool) -> Wish:
    """What `[SUBJECT] [WORD]` with `--general` and `--reset` means.

    Raises:
        UsageError: it means nothing, or could mean two things.
    """
    rest = list(arguments)
    scope = None if everywhere or not rest else rest.pop(0)
    if scope is not None and not rest and not reset and scope.upper() in words:
        raise UsageError(
            f"{scope} is a word to set, not a subject",
            hint=f"`--general {scope}` sets it where nothing else is said; "
            f"`SUBJECT {scope}` for one subject.",
        )
    word = rest.pop(0).upper() if rest else None
    if rest or (reset and word is not None):
        raise UsageError(f"{' '.join(arguments)}: that is more than can be done at once")
    if word is not None and word not in words:
        raise UsageError(f"{word} is none of {', '.join(words)}")
    if reset and scope is None:
        raise UsageError("--reset needs a SUBJECT", hint="what holds for all is set, never empty.")
    return Wish(scope, word, reset)


def apply(
    wanted: Wish, own: str | None, set_to: Callable[[str], None], reset: Callable[[], None]
) -> bool:
    """Do what is wanted, unless it is so already; whether something was done."""
    if wanted.reset and own is not None:
        reset()
        return True
    if wanted.word is not None and wanted.word != own:
        set_to(wanted.word)
        return True
    return False


def told(wanted: Wish, what: str, own: str | None, in_force: str, *, changed: bool) -> str:
    """What is so now, in a sentence."""
    whose = "its own" if own is not None else "as for all"
    end = "" if wanted.scope is None else f" ({whose})"
    if changed:
        return f"{wanted.place}: {what} is now {in_force}{end}"
    already = " already" if wanted.word is not None or wanted.reset else ""
    return f"{wanted.place}: {what} is {in_force}{already}{end}"


def as_data(
    wanted: Wish, what: str, own: str | None, in_force: str, *, changed: bool
) -> Mapping[str, Json]:
    """The same for programs."""
    return {"subject": wanted.scope, what: in_force, "own": own, "changed": changed}
