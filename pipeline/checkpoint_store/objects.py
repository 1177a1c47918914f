"""Objects by key, in a place that the nodes of a participant share."""

from pathlib import Path
from typing import Protocol


class Objects(Protocol):
    """Objects by key.

    What is required of the place: an object becomes visible as a whole, or not at all. Answers may
    be old: a key without an object although one was written, an earlier content, an incomplete
    list. Every method raises `UnavailableError` if the place does not answer, and
    `EnvironmentProblem` or `NotAllowedError` if it refuses.
    """

    @property
    def place(self) -> str:
        """Names the place, in errors."""

    def read(self, key: str) -> bytes | None:
        """The content of a small object; None: there is none."""

    def write(self, key: str, content: bytes) -> None:
        """Write a small object, or replace it."""

    def send(self, key: str, source: Path) -> None:
        """Write an object with the content of a file."""

    def copy(self, key: str, to: str) -> bool:
        """Write an object with the content of another one, which is not sent for that.

        Returns:
            False: there is no such object, or the place cannot do it.
        """

    def fetch(self, key: str, target: Path) -> bool:
        """Write the content of an object into a new file; False: there is no such object."""

    def keys(self, prefix: str) -> tuple[str, ...]:
        """The keys that begin with a prefix, which ends with `/`."""

    def remove(self, keys: tuple[str, ...]) -> None:
        """Remove objects; those that are missing are passed over."""

    def remove_folder(self, folder: str) -> None:
        """Remove all objects whose keys begin with this and `/`; there may be none."""
