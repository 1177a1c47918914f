"""An archive of the classes that Spark loads: Java maps it instead of reading thousands of files.

Java calls it class data sharing (JEP 350). It is made once for each Java and set of jars, and lies
in the cache. Java itself refuses an archive that does not fit; then, and without one, everything
works as well, but sessions open and first batches come seconds later.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokers.embedded.jars import jar_folder, pyspark_jars
from brokers.embedded.java import Java
from brokers.embedded.processes import ChildSpec, start_child
from brokers.embedded.progress import Progress, Step, silent
from brokers.embedded.turns import one_at_a_time
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, RetryError
from pipeline.system_clock import SystemClock

QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
"""No word about an archive that does not fit, or about classes that are left out of one."""
_CLASS_PATH: Final = "2"
"""Counts up when sessions put the jars into another order, or add some: Java would refuse it."""
_MADE_WITHIN_S: Final = 240.0
_POLL_S: Final = 0.2
_WHAT: Final = "archive of Spark's classes"
_USE: Final = "-Xshare:auto -XX:+VerifySharedSpaces"
"""Java goes on without an archive that does not fit, or whose checksums are not right."""
_WITHOUT: Final = f"no {_WHAT}, so it starts slower"
_FAILED: Final = ".failed"
_ABOUT: Final = ".about"
"""Ends the file beside an archive that says what `_About` holds."""
_STEP: Final = Step(f"making an {_WHAT}, with which it starts faster (once)")


@dataclass(frozen=True, slots=True)
class _About:
    """Of whose jars an archive is, and how many bytes it has: Java dies of one that was cut."""

    jars: Path
    size: int


def archive_path(cache: Path, java: Java) -> Path:
    """Where the archive for this Java and these jars lies, or would lie.

    Raises:
        OSError: the jars cannot be looked at.
    """
    cache = cache.expanduser().absolute()
    told = "\n".join([java.build, _CLASS_PATH, *_class_files(cache)])
    digest = hashlib.sha256(told.encode()).hexdigest()
    return cache / "classes" / f"spark-{digest[:12]}.jsa"


def java_options(cache: Path, java: Java) -> str:
    """What lets a session use the archive; nothing if there is none."""
    try:
        archive = archive_path(cache, java)
        usable = _is_whole(archive)
    except OSError:
        return ""
    return f'"-XX:SharedArchiveFile={archive}" {_USE} {QUIET}' if usable else ""


def ensure_archive(
    cache: Path,
    java: Java,
    program: tuple[str, ...],
    progress: Progress = silent,
    clock: Clock | None = None,
) -> None:
    """Make the archive unless there is one, in about a minute; the jars have to be there.

    An archive that cannot be made is no error. Why is told in a file beside it; as long as that
    exists, it is not tried again for the same Java and jars. An older archive of the same
    installation of PySpark is removed.

    Args:
        cache: where jars and archives are.
        java: which Java will use it.
        program: makes an archive; the cache and the archive's path are added as arguments.
        progress: told when it takes time.
        clock: time.
    """
    try:
        archive = archive_path(cache, java)
        if _is_whole(archive) or archive.with_suffix(_FAILED).exists():
            return
        archive.parent.mkdir(parents=True, exist_ok=True)
        lock = archive.with_name("making.lock")
        with one_at_a_time(lock, f"making an {_WHAT}", _MADE_WITHIN_S, progress):
            if not _is_whole(archive) and not archive.with_suffix(_FAILED).exists():
                progress(_STEP)
                _try((*program, str(cache.expanduser().absolute())), archive, progress, clock)
    except (RetryError, OSError) as error:
        progress(Step(f"{_WITHOUT}: {error}"))


def _try(command: tuple[str, ...], archive: Path, progress: Progress, clock: Clock | None) -> None:
    """Make it, or keep why it could not be made."""
    _remove_useless(archive.parent)
    _describe(archive, _About(pyspark_jars(), 0))
    try:
        _make(command, archive, clock or SystemClock())
    except MedusaError as error:
        failed = archive.with_suffix(_FAILED)
        failed.write_text(f"{error}\n", encoding="utf-8")
        progress(Step(f"{_WITHOUT}; {failed} says why"))


def _make(command: tuple[str, ...], archive: Path, clock: Clock) -> None:
    """Run the program, and keep what it made if it came to its end."""
    part = archive.with_suffix(".part")
    part.unlink(missing_ok=True)
    log = archive.with_suffix(".log")
    child = start_child(ChildSpec(f"the {_WHAT}", (*command, str(part)), log, log.parent))
    deadline = Deadline.after(clock, _MADE_WITHIN_S, f"making an {_WHAT}")
    try:
        while child.running:
            deadline.check()
            clock.sleep(_POLL_S)
        if child.exit_code or not part.exists():
            raise child.failure(f"it ended with exit code {child.exit_code}")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        _describe(archive, _About(pyspark_jars(), part.stat().st_size))
        part.replace(archive)
    finally:
        child.stop()
        part.unlink(missing_ok=True)


def _remove_useless(folder: Path) -> None:
    """Remove what belongs to an installation of PySpark that is gone, or to this one as it was."""
    for file in folder.glob(f"*{_ABOUT}"):
        about = _about(file)
        if about is None or about.jars == pyspark_jars() or not about.jars.is_dir():
            for path in folder.glob(f"{file.stem}.*"):
                path.unlink(missing_ok=True)


def _is_whole(archive: Path) -> bool:
    if not archive.exists():
        return False
    about = _about(archive)
    return about is not None and about.size == archive.stat().st_size


def _describe(archive: Path, about: _About) -> None:
    text = f"{about.size}\n{about.jars}\n"
    archive.with_suffix(_ABOUT).write_text(text, encoding="utf-8")


def _about(archive: Path) -> _About | None:
    """What `_describe` wrote; None if something else stands there, or nothing."""
    try:
        size, jars = archive.with_suffix(_ABOUT).read_text(encoding="utf-8").splitlines()
        return _About(Path(jars), int(size))
    except (FileNotFoundError, ValueError):
        return None


def _class_files(cache: Path) -> Iterator[str]:
    """What decides whether an archive fits: which jars there are, and where."""
    for folder in (jar_folder(cache), pyspark_jars()):
        for jar in sorted(folder.rglob("*.jar")):
            look = jar.stat()
            yield f"{jar} {look.st_size} {look.st_mtime_ns}"
