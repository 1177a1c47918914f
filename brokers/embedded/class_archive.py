"""Class archive of Spark (class data sharing, JEP 350): a file that Java maps into memory.

Without it Java reads thousands of class files. It is created once for each Java and set of jars,
and kept in the cache. Java itself rejects an archive that does not fit; then, and without one,
everything works as well, but a session opens, and its first batch ends, seconds later.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokers.embedded.file_lock import exclusive_lock
from brokers.embedded.jars import jar_folder, pyspark_jars
from brokers.embedded.java import Java
from brokers.embedded.processes import ChildSpec, start_child
from brokers.embedded.progress import Progress, Step, silent
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, RetryError
from pipeline.system_clock import SystemClock

QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
"""Turns off log lines about an archive that does not fit, or about classes that it omits."""
_CLASS_PATH: Final = "2"
"""Increased when sessions reorder the jars, or add some: Java would reject an older archive."""
_CREATED_WITHIN_S: Final = 240.0
_POLL_S: Final = 0.2
_WHAT: Final = "archive of Spark's classes"
_USE: Final = "-Xshare:auto -XX:+VerifySharedSpaces"
"""With these options Java ignores an archive that does not fit, or whose checksums are wrong."""
_WITHOUT: Final = f"no {_WHAT}, so it starts slower"
_FAILED: Final = ".failed"
_ABOUT: Final = ".about"
"""Suffix of the file that stores `_About`, in the folder of the archive."""
_STEP: Final = Step(f"making an {_WHAT}, with which it starts faster (once)")


@dataclass(frozen=True, slots=True)
class _About:
    """PySpark's jar folder and the size of an archive: Java crashes on a truncated archive."""

    jars: Path
    size: int


def archive_path(cache: Path, java: Java) -> Path:
    """The path of the archive for this Java and these jars, whether or not it exists.

    Raises:
        OSError: the jars cannot be listed.
    """
    cache = cache.expanduser().absolute()
    key = "\n".join([java.build, _CLASS_PATH, *_class_files(cache)])
    digest = hashlib.sha256(key.encode()).hexdigest()
    return cache / "classes" / f"spark-{digest[:12]}.jsa"


def java_options(cache: Path, java: Java) -> str:
    """The Java options with which a session uses the archive; empty if there is none."""
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
    """Create the archive if it does not exist, in about a minute; the jars must exist.

    An archive that cannot be created is no error. The reason is written to a file in the same
    folder; while that file exists, there is no other attempt for the same Java and jars. An older
    archive of the same installation of PySpark is removed.

    Args:
        cache: the folder of jars and archives.
        java: the Java that will use it.
        program: creates an archive; the cache and the archive's path are added as arguments.
        progress: called before a step that takes time.
        clock: time.
    """
    try:
        archive = archive_path(cache, java)
        if _is_whole(archive) or archive.with_suffix(_FAILED).exists():
            return
        archive.parent.mkdir(parents=True, exist_ok=True)
        lock = archive.with_name("making.lock")
        with exclusive_lock(lock, f"making an {_WHAT}", _CREATED_WITHIN_S, progress):
            if not _is_whole(archive) and not archive.with_suffix(_FAILED).exists():
                progress(_STEP)
                _try((*program, str(cache.expanduser().absolute())), archive, progress, clock)
    except (RetryError, OSError) as error:
        progress(Step(f"{_WITHOUT}: {error}"))


def _try(command: tuple[str, ...], archive: Path, progress: Progress, clock: Clock | None) -> None:
    """Create the archive, or store the reason why it could not be created."""
    _remove_useless(archive.parent)
    _describe(archive, _About(pyspark_jars(), 0))
    try:
        _make(command, archive, clock or SystemClock())
    except MedusaError as error:
        failed = archive.with_suffix(_FAILED)
        failed.write_text(f"{error}\n", encoding="utf-8")
        progress(Step(f"{_WITHOUT}: {error.message}; to try again, remove {failed}"))


def _make(command: tuple[str, ...], archive: Path, clock: Clock) -> None:
    """Run the program, and keep the archive if it succeeded."""
    part = archive.with_suffix(".part")
    part.unlink(missing_ok=True)
    log = archive.with_suffix(".log")
    child = start_child(ChildSpec(f"the {_WHAT}", (*command, str(part)), log, log.parent))
    deadline = Deadline.after(clock, _CREATED_WITHIN_S, f"making an {_WHAT}")
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
    """Remove archives of deleted installations of PySpark, and older ones of the present one."""
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
    archive.with_suffix(_ABOUT).write_text(f"{about.size}\n{about.jars}\n", encoding="utf-8")


def _about(archive: Path) -> _About | None:
    """Read the file that `_describe` wrote; None if it is missing or cannot be parsed."""
    try:
        size, jars = archive.with_suffix(_ABOUT).read_text(encoding="utf-8").splitlines()
        return _About(Path(jars), int(size))
    except (FileNotFoundError, ValueError):
        return None


def _class_files(cache: Path) -> Iterator[str]:
    """Path, size and modification time of every jar, which decide whether an archive fits."""
    for folder in (jar_folder(cache), pyspark_jars()):
        for jar in sorted(folder.rglob("*.jar")):
            status = jar.stat()
            yield f"{jar} {status.st_size} {status.st_mtime_ns}"
