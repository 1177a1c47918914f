"""Secrets: where one is written, and its value, which nothing ever prints.

A settings file should say where a secret lies, not what it is: `${env:NAME}` is a variable of the
environment, `${file:PATH}` is what a file holds. What is written is resolved here and nowhere else.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pipeline.errors import InputError

HIDDEN: Final = "********"
"""Shown in the place of a secret."""
FORM: Final = r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}|\$\{file:[^{}\n]+\}|(?s:(?!\$\{).*)"
"""What may be written: a reference, or the secret itself."""
BYTES_MAX: Final = 65_536
_REFERENCE: Final = re.compile(r"\$\{(?P<kind>env|file):(?P<name>[^{}]+)\}")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret's value. Only `reveal` tells it, which what hands it to a driver calls."""

    _value: str

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"


@dataclass(frozen=True, slots=True)
class SecretSetting:
    """A setting that is a secret, as it is written; an empty one is not set.

    Args:
        written: the secret itself, or a reference to it.
        name: the setting's name, for messages.
        folder: where a relative path in a reference begins.
    """

    written: str = field(default="", repr=False)
    name: str = ""
    folder: Path = Path()

    def __str__(self) -> str:
        """What may be shown: a reference as it is, and nothing of a secret."""
        return self.written if not self.written or is_reference(self.written) else HIDDEN

    def __bool__(self) -> bool:
        return bool(self.written)

    @property
    def file(self) -> Path | None:
        """The file that it refers to, if it refers to one."""
        reference = _REFERENCE.fullmatch(self.written)
        if reference is None or reference["kind"] != "file":
            return None
        return (self.folder / Path(reference["name"]).expanduser()).absolute()

    @property
    def variable(self) -> str | None:
        """The variable of the environment that it refers to, if it refers to one."""
        reference = _REFERENCE.fullmatch(self.written)
        return reference["name"] if reference and reference["kind"] == "env" else None

    def resolve(self, environment: Mapping[str, str] = os.environ) -> Secret:
        """The secret, read from where it lies.

        Raises:
            InputError: there is no such variable or file, or it holds nothing.
        """
        reference = _REFERENCE.fullmatch(self.written)
        if reference is None:
            return Secret(self.written)
        if self.file is not None:
            return self._from_file(self.file)
        return self._from_environment(reference["name"], environment)

    def _from_environment(self, name: str, environment: Mapping[str, str]) -> Secret:
        value = environment.get(name, "")
        if not value:
            raise InputError(
                f"the environment variable {name} is not set",
                place=f"{self.name} = {self}",
                hint="set it where this program starts.",
            )
        return Secret(value)

    def _from_file(self, path: Path) -> Secret:
        place = f"{self.name} = {self}"
        try:
            with path.open("rb") as file:
                content = file.read(BYTES_MAX + 1)
            text = content.decode("utf-8")
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}",
                place=place,
                hint="write the secret, and nothing else, into that file.",
            ) from error
        except UnicodeDecodeError:
            # Not `from`: the error of Python carries what the file holds.
            raise InputError(f"{path} is not text in UTF-8", place=place) from None
        # Editors and `echo` end a line.
        value = text.removesuffix("\n").removesuffix("\r")
        if not value or len(content) > BYTES_MAX:
            raise InputError(
                f"{path} {'holds nothing' if not value else 'is too large for a secret'}",
                place=place,
                hint="write the secret, and nothing else, into that file.",
            )
        return Secret(value)


def is_reference(written: str) -> bool:
    """Whether it says where a secret lies, instead of being one.

    >>> is_reference("${env:KAFKA_SECRET}")
    True
    """
    return _REFERENCE.fullmatch(written) is not None
