"""Subject names and contexts. Pure.

A context is a registry within the registry: ids and subjects of its own. `:.line-3:cars-value` is
the subject `cars-value` of the context `.line-3`; a name without that form is in the default
context `.`. The syntax and its restrictions are those of Confluent's registry.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, NewType

Context = NewType("Context", str)
"""With its leading dot."""
DEFAULT: Context = Context(".")
EVERY: Context = Context("*")
"""In a search: all contexts."""
GLOBAL: Context = Context(".__GLOBAL")
"""Contains no subjects: its configuration and mode are the defaults of all contexts."""
_RESERVED = {"__GLOBAL", "__EMPTY"}
_DEFAULT_FIRST: Final = re.compile(r"^(?::\.:)+")


@dataclass(frozen=True, slots=True)
class SubjectName:
    """A subject and its context; without a subject, the context as a whole."""

    context: Context
    subject: str

    @classmethod
    def parse(cls, text: str) -> "SubjectName":
        """Parse a name; every text is valid.

        After prefixes of the default context another context may follow: then that one applies, as
        in the printed form.
        """
        text = _DEFAULT_FIRST.sub("", text, count=1)
        if text.startswith((":.", ":*:")):
            context, _, subject = text[1:].partition(":")
            return cls(Context(context), subject)
        return cls(DEFAULT, text)

    @property
    def is_default(self) -> bool:
        """Whether this is the default context as a whole."""
        return self.context == DEFAULT and not self.subject

    @property
    def whole_context(self) -> "SubjectName":
        """Its context as a whole."""
        return SubjectName(self.context, "")

    @property
    def prefix(self) -> str:
        """The prefix of subjects of its context; empty for the default context."""
        return "" if self.context == DEFAULT else f":{self.context}:"

    def resolve(self, text: str) -> "SubjectName":
        """Resolve another name relative to this one: in the same context if it has none."""
        other = SubjectName.parse(text)
        if other.context == DEFAULT and not text.startswith(":."):
            return SubjectName(self.context, other.subject)
        return other

    def qualified(self, text: str) -> str:
        """The result of `resolve` as a text with its context, which resolves to the same name."""
        other = self.resolve(text)
        hidden = other.context == DEFAULT != self.context
        return f":{DEFAULT}:{other.subject}" if hidden else str(other)

    def __str__(self) -> str:
        return f"{self.prefix}{self.subject}"


def may_hold_schemas(name: SubjectName) -> bool:
    """Whether schemas can be registered under a name."""
    return name.context not in {GLOBAL, EVERY} and may_be_configured(name)


def may_be_configured(name: SubjectName) -> bool:
    """Whether a name can have a configuration or a mode."""
    control = any(unicodedata.category(c) == "Cc" for c in f"{name.context}{name.subject}")
    return not control and name.subject not in _RESERVED


def java_order(text: str) -> bytes:
    """A sort key of texts in Java's order: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
