"""Output files of commands, which never overwrite an existing file."""

from collections.abc import Iterable
from pathlib import Path

from pipeline.errors import EnvironmentProblem, RefusedError


def write_new(file: Path, parts: Iterable[str]) -> None:
    """Create a file with a text given in parts.

    Raises:
        RefusedError: it exists.
        EnvironmentProblem: it cannot be written.
    """
    try:
        with file.open("x", encoding="utf-8") as out:
            out.writelines(parts)
    except FileExistsError as error:
        raise exists(file) from error
    except OSError as error:
        raise EnvironmentProblem(
            f"the file cannot be written: {error.strerror}", place=str(file)
        ) from error


def exists(file: Path) -> RefusedError:
    """The error for a file that exists."""
    return RefusedError("the file exists", place=str(file), hint="name another one, or remove it.")
