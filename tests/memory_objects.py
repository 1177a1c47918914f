"""Objects in memory, for tests: answers may be old, or fail."""

from pathlib import Path

from pipeline.errors import UnavailableError


class MemoryObjects:
    """Implements `Objects` in memory."""

    def __init__(self) -> None:
        self.place = "memory"
        self.content: dict[str, bytes] = {}
        self.failing = False
        """Whether nothing can be read or written."""
        self.sent: list[str] = []
        """The keys that were written, in order."""
        self.fetched: list[str] = []
        """The keys that were fetched, in order."""
        self.copied: list[str] = []
        """The keys that were written from others."""
        self.fails_after: int | None = None
        """How many more objects can be written."""
        self.listed: tuple[str, ...] | None = None
        """What every list shows; None: what is there."""

    def read(self, key: str) -> bytes | None:
        """See `Objects`."""
        self._check()
        return self.content.get(key)

    def write(self, key: str, content: bytes) -> None:
        """See `Objects`."""
        self._check()
        if self.fails_after is not None:
            if not self.fails_after:
                raise UnavailableError("full")
            self.fails_after -= 1
        self.content[key] = content
        self.sent.append(key)

    def send(self, key: str, source: Path) -> None:
        """See `Objects`."""
        self.write(key, source.read_bytes())

    def copy(self, key: str, to: str) -> bool:
        """See `Objects`."""
        found = self.read(key)
        if found is None:
            return False
        self.content[to] = found
        self.copied.append(to)
        return True

    def fetch(self, key: str, target: Path) -> bool:
        """See `Objects`."""
        found = self.read(key)
        if found is None:
            return False
        self.fetched.append(key)
        target.write_bytes(found)
        return True

    def keys(self, prefix: str) -> tuple[str, ...]:
        """See `Objects`."""
        self._check()
        listed = self.content if self.listed is None else self.listed
        return tuple(sorted(key for key in listed if key.startswith(prefix)))

    def remove(self, keys: tuple[str, ...]) -> None:
        """See `Objects`."""
        self._check()
        for key in keys:
            self.content.pop(key, None)

    def remove_folder(self, folder: str) -> None:
        """See `Objects`."""
        self.remove(tuple(key for key in self.content if key.startswith(f"{folder}/")))

    def _check(self) -> None:
        if self.failing:
            raise UnavailableError("it does not answer")
