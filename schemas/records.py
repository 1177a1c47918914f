"""Words shared by the registry, its store, its REST service and its client."""

from dataclasses import dataclass

from pipeline.errors import SchemaError
from pipeline.ids import SchemaId, SchemaVersion, Subject

MAX_SUBJECT_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of a subject. The same content has the same id under every subject."""

    subject: Subject
    version: SchemaVersion
    id: SchemaId
    text: str


class IncompatibleSchemaError(SchemaError):
    """A new version that does not fit what is registered; `reasons` says why, one line each."""

    code = "incompatible-schema"

    def __init__(self, subject: str, reasons: tuple[str, ...]) -> None:
        listed = "; ".join(reasons) if reasons else "the registry gave no reason"
        super().__init__(
            f"the schema does not fit what is registered: {listed}",
            place=f"subject {subject}",
            hint="give added fields a default, keep types as they are or widen them (int to long).",
        )
        self.reasons = reasons

    def __str__(self) -> str:
        listed = "".join(f"\n    - {reason}" for reason in self.reasons)
        return (
            f"{self.place}: the schema does not fit what is registered{listed}\n  hint: {self.hint}"
        )


class BadSubjectError(SchemaError):
    """A subject that cannot be one."""

    code = "bad-subject"


class BadLevelError(SchemaError):
    """A compatibility level that does not exist or is not offered."""

    code = "bad-level"


def check_subject(subject: str) -> Subject:
    """The subject, if it can be one.

    Raises:
        BadSubjectError: it is empty, too long, or has control characters.
    """
    if not subject or len(subject) > MAX_SUBJECT_CHARACTERS or not subject.isprintable():
        raise BadSubjectError(
            f"a subject has 1 to {MAX_SUBJECT_CHARACTERS} printable characters", place="subject"
        )
    return Subject(subject)
