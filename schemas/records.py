"""Types shared by the registry, its REST service and its client."""

from dataclasses import dataclass

from pipeline.errors import SchemaError
from pipeline.ids import SchemaId, SchemaVersion, Subject


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of a subject. The same content has the same id under every subject."""

    subject: Subject
    version: SchemaVersion
    id: SchemaId
    text: str


class IncompatibleSchemaError(SchemaError):
    """A new version is incompatible with registered ones; `reasons` has one line for each."""

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
