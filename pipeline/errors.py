"""The error tree, split by what the caller should do next.

    MedusaError
    ├── InputError            fix what you wrote or sent           exit 65
    │   ├── DocumentError     a network document; carries every problem found
    │   │   └── DeployError   a sound document that does not fit what is already there
    │   ├── SchemaError       an Avro schema that does not parse or does not fit
    │   └── RefusedError      a request that the present state does not allow
    │       ├── NotAllowedError    a server does not accept our credentials, or they lack a right
    │       └── NewerFormatError   a newer version of Medusa wrote what was read
    ├── UsageError            the command was typed wrongly        exit 64
    ├── UnavailableError      a server cannot be reached           exit 69
    ├── RetryError            try again: deadline passed, lock held, lost race   exit 75
    ├── EnvironmentProblem    this machine lacks something: Java, a port, a folder   exit 69
    ├── FencedError           another epoch owns this: stop, ask the catalog, never fight   exit 75
    └── BrokenInvariantError  a bug of ours or damaged data: stop, keep everything, report   exit 1

A message says what happened in one line; `place` says where (file, line, box, topic, partition,
offset); `hint` says what to do. Drivers' errors become one of these in exactly one module per
driver, always with `raise … from`.

Across the tree, `external` marks errors whose cause is outside of Medusa: a server, a disk, a
right, a topic. A lane retries those without a limit, and gives up after ten others in a row.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the process tells a script; documented in `docs/reference/command-line.md`."""

    DONE = 0
    FAILED = 1
    CHANGES_PENDING = 2
    FRAGMENT_FAILED = 3
    USAGE = 64
    BAD_INPUT = 65
    UNAVAILABLE = 69
    TRY_AGAIN = 75
    INTERRUPTED = 130


class MedusaError(Exception):
    """The root of everything that this project raises on purpose.

    Args:
        message: what happened, one line, no full stop.
        place: where: "network.yaml:12, box tolls", "topic car-sightings, partition 2, offset 17".
        hint: what the reader should do, one sentence.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    code: ClassVar[str] = "error"
    external: ClassVar[bool] = False
    """Whether the cause is outside of Medusa and can end without a command of Medusa's."""

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        what_next = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{what_next}"


class InputError(MedusaError):
    """What was written or sent has to change; nothing was done."""

    exit_code = ExitCode.BAD_INPUT
    code = "bad-input"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a document, with everything a reader needs to mend it.

    `line` counts from 1. `choices` names what exists instead, best guess first; `details` are parts
    of the mistake that want a line each.
    """

    message: str
    file: str = ""
    line: int = 0
    box: str = ""
    column: str = ""
    choices: tuple[str, ...] = field(default=())
    hint: str = ""
    details: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        parts = [p for p in (where, f"box {self.box}" if self.box else "") if p]
        if self.column:
            parts.append(f"column {self.column}")
        text = f"{', '.join(parts)}: {self.message}" if parts else self.message
        if self.choices:
            text += f" (there is: {', '.join(self.choices)})"
        text += "".join(f"\n    - {detail}" for detail in self.details)
        if self.hint:
            text += f"\n    hint: {self.hint}"
        return text


class DocumentError(InputError):
    """A network document with one or more mistakes; all of them are in `problems`."""

    code = "bad-document"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        count = len(problems)
        super().__init__(f"{count} {'problem' if count == 1 else 'problems'} in the document")
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems)])


class DeployError(DocumentError):
    """A sound document that does not fit what is already there; nothing was changed."""

    code = "not-deployable"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        count = len(problems)
        self.message = (
            f"this cannot be deployed: {count} {'thing stands' if count == 1 else 'things stand'} "
            "against it"
        )


class SchemaError(InputError):
    """A schema that does not parse, is missing, or does not fit what is already there."""

    code = "bad-schema"


class RefusedError(InputError):
    """A well-formed request that the present state does not allow; nothing was changed."""

    code = "refused"


class NotAllowedError(RefusedError):
    """A server does not accept our credentials, or they lack a right."""

    code = "not-allowed"
    external = True


class NewerFormatError(RefusedError):
    """A newer version of Medusa wrote what was read; this program must not guess what it means."""

    code = "newer-format"


class UsageError(MedusaError):
    """The command line itself was wrong."""

    exit_code = ExitCode.USAGE
    code = "usage"


class UnavailableError(MedusaError):
    """A server that is needed does not answer."""

    exit_code = ExitCode.UNAVAILABLE
    code = "unavailable"
    external = True


class RetryError(MedusaError):
    """Nothing is wrong for good: a deadline passed, a lock is held, a race was lost."""

    exit_code = ExitCode.TRY_AGAIN
    code = "try-again"


class EnvironmentProblem(MedusaError):  # noqa: N818 - EnvironmentError is a Python built-in
    """This machine lacks something: Java, a free port, a folder that can be written."""

    exit_code = ExitCode.UNAVAILABLE
    code = "environment"
    external = True


class FragmentFailedError(MedusaError):
    """A deployed fragment has failed, and will not run without help."""

    exit_code = ExitCode.FRAGMENT_FAILED
    code = "fragment-failed"


class FencedError(MedusaError):
    """A newer epoch owns the fragment: stop, ask the catalog, never initialise again unasked."""

    exit_code = ExitCode.TRY_AGAIN
    code = "fenced"


class BrokenInvariantError(MedusaError):
    """Something that cannot happen did: a bug, or damaged data. Stop and keep everything."""

    code = "broken-invariant"
