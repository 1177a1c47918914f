"""Download of the jars with Ivy, which is part of PySpark, into a cache outside the project.

Ivy has a cache of its own (`<cache>/ivy`), and a file is copied from it only after its checksum was
verified. So an interrupted download continues with the missing files, and a jar that is lost or
damaged later is restored without the network.
"""

import functools
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from brokers.embedded.file_lock import exclusive_lock
from brokers.embedded.jars import (
    Jar,
    JarSet,
    embedded_jars,
    file_sha256,
    pyspark_jars,
    unverified,
    verify,
)
from brokers.embedded.java import Java
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.progress import Progress, Step, silent
from pipeline.errors import EnvironmentProblem, UnavailableError

FETCH_S_MAX = 1_800.0
SILENCE_S_MAX = 180.0
"""Ivy prints a line for each module and each jar; without a line for this time it is stuck."""
_POLL_S = 0.2
_ATTEMPTS = 2
"""A damaged file is downloaded once more; a second damage is not accidental."""
_GO_ON = "run the command again; it goes on with the files still missing"


@dataclass(frozen=True, slots=True)
class Fetch:
    """Parameters of a download: cache, Java, jars, progress callback."""

    cache: Path
    java: Java
    jar_set: JarSet
    progress: Progress

    @property
    def folder(self) -> Path:
        """The target folder of the jars."""
        return self.jar_set.folder(self.cache)

    @property
    def ivy(self) -> Path:
        """Ivy's own cache."""
        return self.cache.expanduser() / "ivy"


def ensure_jars(
    cache: Path,
    java: Callable[[], Java],
    progress: Progress = silent,
    jar_set: JarSet | None = None,
) -> None:
    """Download the jars that are missing from the cache or damaged.

    Args:
        cache: the cache folder, may begin with `~`.
        java: finds the Java that runs Ivy; called only if a download is needed.
        progress: called with the number of jars so far.
        jar_set: the jars; by default those of the embedded stack.

    Raises:
        EnvironmentProblem: the folder cannot be written, or a jar's checksum stays wrong.
        UnavailableError: the repository cannot be reached or does not have a jar.
        RetryError: the download of another process does not end.
    """
    jar_set = jar_set or embedded_jars()
    folder = jar_set.folder(cache)
    if not unverified(folder, jar_set.jars):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(
            cache.expanduser() / "fetch.lock", "fetching jars", FETCH_S_MAX, progress
        ):
            fetch_missing(Fetch(cache, java(), jar_set, progress))
    except OSError as error:
        raise EnvironmentProblem(
            f"the cache folder cannot be used: {error}",
            place=str(cache.expanduser()),
            hint="name another one with the setting `cache` (MEDUSA_CACHE)",
        ) from error


def fetch_missing(fetch: Fetch) -> None:
    """Download until every jar exists with its checksum; raises as `ensure_jars` does."""
    missing, damaged = _collect(fetch, verify(fetch.folder, fetch.jar_set.jars))
    for _ in range(_ATTEMPTS):
        if not missing:
            break
        for path in damaged:
            path.unlink()
        _run_ivy(fetch)
        missing, damaged = _collect(fetch, missing)
        if not damaged:
            break
    for path in damaged:
        path.unlink()
    if damaged:
        raise EnvironmentProblem(
            f"{', '.join(path.name for path in damaged)} came with the wrong checksum, twice,"
            " and was deleted",
            place="fetching jars",
            hint="something between this machine and the repository changes files",
        )
    if missing:
        raise UnavailableError(
            f"the repository did not deliver {', '.join(jar.name for jar in missing)}",
            place="fetching jars",
            hint=_GO_ON,
        )
    verify(fetch.folder, fetch.jar_set.jars)


def _collect(fetch: Fetch, jars: tuple[Jar, ...]) -> tuple[tuple[Jar, ...], tuple[Path, ...]]:
    """Copy the jars with the right checksum from Ivy's cache.

    Returns:
        The jars that are still missing, and the files in Ivy's cache with the wrong content.
    """
    missing: list[Jar] = []
    damaged: list[Path] = []
    for jar in jars:
        cached = tuple((fetch.ivy / "cache").glob(f"*/*/*/{jar.name}"))
        right = next((path for path in cached if file_sha256(path) == jar.sha256), None)
        if right is None:
            missing.append(jar)
            damaged.extend(cached)
            continue
        target = fetch.folder / jar.path
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.part")
        shutil.copyfile(right, partial)
        partial.replace(target)
    return tuple(missing), tuple(damaged)


def _run_ivy(fetch: Fetch) -> None:
    """Run Ivy once; raises unless its exit code is 0."""
    fetch.ivy.mkdir(parents=True, exist_ok=True)
    log = fetch.ivy / "fetch.log"
    log.unlink(missing_ok=True)
    ivy_file = fetch.ivy / "ivy.xml"
    ivy_file.write_text(fetch.jar_set.ivy_xml)
    command = (
        str(fetch.java.executable),
        # Nothing of the user's own Ivy settings: the same jars on every machine.
        f"-Divy.default.ivy.user.dir={fetch.ivy / 'user'}",
        "-jar",
        str(_ivy_jar()),
        *("-ivy", str(ivy_file), "-cache", str(fetch.ivy / "cache")),
    )
    child = start_child(ChildSpec("Ivy", command, log, fetch.ivy, grace_s=2.0))
    try:
        _watch(child, log, fetch)
    finally:
        child.stop()
    if child.exit_code:
        raise UnavailableError(
            _reason(log.read_text(errors="replace")),
            place="fetching jars",
            hint=f"jars come from the Maven repository, once; {_GO_ON} (log: {log})",
        )


def _watch(child: Child, log: Path, fetch: Fetch) -> None:
    """Report progress until Ivy ends; raises when it prints nothing for too long."""
    started_at = changed_at = time.monotonic()
    jars = fetch.jar_set.jars
    before = sum(any((fetch.ivy / "cache").glob(f"*/*/*/{jar.name}")) for jar in jars)
    reported, size = None, -1
    running = True
    while running:
        running = child.running  # read before the log, so that the end of the log is read too
        now = time.monotonic()
        if log.stat().st_size != size:
            size, changed_at = log.stat().st_size, now
            step = _step(log.read_text(errors="replace"), before, len(jars))
            if step != reported:
                fetch.progress(step)
                reported = step
        if now - changed_at > SILENCE_S_MAX or now - started_at > FETCH_S_MAX:
            raise UnavailableError(
                "the repository stopped answering", place="fetching jars", hint=_GO_ON
            )
        time.sleep(_POLL_S)


def _step(log: str, before: int, total: int) -> Step:
    """Progress of Ivy from its log: first it resolves modules, then it downloads."""
    downloaded = log.count("[SUCCESSFUL ]")
    if downloaded:
        return Step("fetching jars", min(before + downloaded, total), total)
    return Step(
        "looking up jars", min(len(re.findall(r"^\tfound ", log, re.MULTILINE)), total), total
    )


def _reason(log: str) -> str:
    """The reason of a failure in Ivy's log, in one line."""
    unresolved = re.findall(
        r"^\s*(?:::\s*)?(\S+#\S+;\S+: (?:not found|.*unresolved.*))", log, re.MULTILINE
    )
    if unresolved:
        return f"the repository cannot be reached or lacks {unresolved[0].split(':')[0]}"
    # Without blank lines and Ivy's separator lines.
    lines = [line.strip() for line in log.splitlines() if not re.fullmatch(r"[\s:|=-]*", line)]
    return f"Ivy failed: {lines[-1] if lines else 'it printed nothing'}"


@functools.cache
def _ivy_jar() -> Path:
    found = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not found:
        raise EnvironmentProblem("PySpark has no Ivy in it", place=str(pyspark_jars()))
    return found[-1]
