"""Loader of tests, and of their networks, from files."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pipeline.deploy.documents import Document, read_document
from pipeline.errors import DocumentError, InputError, Problem
from pipeline.testing import document
from pipeline.testing.check import Checked, check
from pipeline.testing.document import TestWritten

PATTERN: Final = "*.yaml"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A test ready to run.

    Args:
        name: name of its file, without the suffix.
        file: for messages.
        test: its checked steps.
    """

    name: str
    file: str
    test: Checked


@dataclass
class Loader:
    """Loads tests; each network is read once.

    `default` returns the network document for a test that names none.
    """

    default: Callable[[], Path]
    _documents: dict[tuple[Path, tuple[tuple[str, Path], ...]], Document] = field(
        default_factory=dict
    )

    def all(self, paths: Iterable[Path]) -> tuple[Loaded, ...]:
        """Load tests.

        Raises:
            DocumentError: every mistake in all of them.
            InputError: a file cannot be read.
        """
        loaded: list[Loaded] = []
        problems: list[Problem] = []
        for path in paths:
            try:
                loaded.append(self.one(path))
            except DocumentError as error:
                problems.extend(p for p in error.problems if p not in problems)
        if problems:
            raise DocumentError(tuple(problems))
        return tuple(loaded)

    def one(self, path: Path) -> Loaded:
        """Load a test.

        Raises:
            DocumentError: every mistake in it, or in its network.
            InputError: a file cannot be read.
        """
        written = document.read(_read(path).decode("utf-8", errors="replace"), str(path))
        network = self._network(written, path).network
        test = check(written, network, lambda name: _read(path.parent / name))
        return Loaded(path.stem, str(path), test)

    def _network(self, written: TestWritten, path: Path) -> Document:
        folder = path.parent
        named = (("network", written.network), *(("schemas", name) for _, name in written.schemas))
        missing = tuple(
            Problem(f"{key}: there is no file {folder / text.value}", str(path), text.line)
            for key, text in named
            if text is not None and not (folder / text.value).is_file()
        )
        if missing:
            raise DocumentError(missing)
        file = folder / written.network.value if written.network else self.default()
        schemas = tuple((subject, folder / name.value) for subject, name in written.schemas)
        key = (file.resolve(), schemas)
        if key not in self._documents:
            self._documents[key] = read_network(file, dict(schemas), str(path))
        return self._documents[key]


def read_network(file: Path, schemas: dict[str, Path], test: str) -> Document:
    """Read a network without a registry.

    Args:
        file: its document.
        schemas: schema files of the subjects that it names.
        test: name of the test, for messages.

    Raises:
        DocumentError: every mistake in it.
        InputError: a file cannot be read, or a subject has none.
    """

    def read_subject(subject: str) -> str:
        if subject not in schemas:
            raise InputError(
                f"the network takes a schema from the registry, subject {subject}; a test has none",
                place=test,
                hint=f"say which file has it: `schemas: {{{subject}: FILE.avsc}}`.",
            )
        return _read(schemas[subject]).decode("utf-8", errors="replace")

    return read_document(file, read_subject)


def find_tests(paths: Iterable[Path], folder: Path) -> tuple[Path, ...]:
    """The named tests, or all tests of a folder.

    Args:
        paths: files, or folders with tests.
        folder: the folder of the tests if none are named.

    Raises:
        InputError: there is none.
    """
    if not paths and not folder.exists():
        raise _no_test("there is no folder with tests", (folder,))
    found = tuple(dict.fromkeys(file for path in paths or (folder,) for file in _below(path)))
    if not found:
        raise _no_test("there is no test", paths or (folder,))
    return found


def _no_test(message: str, searched: Iterable[Path]) -> InputError:
    return InputError(
        message,
        place=", ".join(map(str, searched)),
        hint=f"a test is a file {PATTERN} there; docs/reference/testing.md says how to write one, "
        "and `medusa init tolls --into FOLDER` writes one to begin with.",
    )


def _below(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(path.glob(PATTERN))
    elif path.is_file():
        yield path
    else:
        raise InputError("there is no such test", place=str(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", place=str(path)) from error
