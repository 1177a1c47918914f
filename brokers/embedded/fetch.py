"""Fetches the jars through Ivy, which is inside PySpark, into a cache outside the project.

Ivy keeps what it got in a cache of its own (`<cache>/ivy`), and nothing leaves that cache before
its checksum was found right. So an interrupted fetch goes on with the files still missing, and a
jar that was lost or damaged later is put back without the network.
"""

import functools
import importlib.resources
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from brokers.embedded.jars import (
    Jar,
    file_sha256,
    jar_folder,
    manifest,
    pyspark_jars,
    unverified,
    verify,
)
from brokers.embedded.java import Java
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.progress import Progress, Step, silent
from brokers.embedded.turns import one_at_a_time
from pipeline.errors import EnvironmentProblem, UnavailableError

FETCH_S_MAX = 1_800.0
SILENCE_S_MAX = 180.0
"""Ivy prints a line for each module and each jar; so long without one means that nothing comes."""
_POLL_S = 0.2
_ATTEMPTS = 2
"""A damaged file is fetched once more; damaged again, it is not an accident."""
_GO_ON = "run the command again; it goes on with the files still missing"


@dataclass(frozen=True, slots=True)
class Fetch:
    """One way to get the jars: from where Ivy gets them into which cache."""

    cache: Path
    java: Java
    jars: tuple[Jar, ...]
    progress: Progress

    @property
    def folder(self) -> Path:
        """Where the jars end up."""
        return jar_folder(self.cache)

    @property
    def ivy(self) -> Path:
        """Ivy's own cache."""
        return self.cache.expanduser() / "ivy"


def ensure_jars(cache: Path, java: Callable[[], Java], progress: Progress = silent) -> None:
    """Make sure that every jar is in the cache and whole; fetch what is not.

    Args:
        cache: the cache folder, may begin with `~`.
        java: finds the Java that runs Ivy; asked only if something has to be fetched.
        progress: told how many jars there are so far.

    Raises:
        EnvironmentProblem: the folder cannot be written, or a jar's checksum stays wrong.
        UnavailableError: the repository cannot be reached or does not have a jar.
        RetryError: another process fetches and does not get done.
    """
    folder = jar_folder(cache)
    if not unverified(folder, manifest()):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(
            cache.expanduser() / "fetch.lock", "fetching jars", FETCH_S_MAX, progress
        ):
            fetch_missing(Fetch(cache, java(), manifest(), progress))
    except OSError as error:
        raise EnvironmentProblem(
            f"the cache folder cannot be used: {error}",
            place=str(cache.expanduser()),
            hint="name another one with the setting `cache` (MEDUSA_CACHE)",
        ) from error


def fetch_missing(fetch: Fetch) -> None:
    """Fetch until every jar is there and right; raises as `ensure_jars` does."""
    wanted = verify(fetch.folder, fetch.jars)
    still, damaged = _collect(fetch, wanted)
    for _ in range(_ATTEMPTS):
        if not still:
            break
        for path in damaged:
            path.unlink()
        _run_ivy(fetch)
        still, damaged = _collect(fetch, still)
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
    if still:
        raise UnavailableError(
            f"the repository did not deliver {', '.join(jar.name for jar in still)}",
            place="fetching jars",
            hint=_GO_ON,
        )
    verify(fetch.folder, fetch.jars)


def _collect(fetch: Fetch, wanted: tuple[Jar, ...]) -> tuple[tuple[Jar, ...], tuple[Path, ...]]:
    """Copy what Ivy has in its cache and is right.

    Returns:
        The jars that are still wanted, and the files of Ivy's that have the wrong content.
    """
    still: list[Jar] = []
    damaged: list[Path] = []
    for jar in wanted:
        cached = tuple((fetch.ivy / "cache").glob(f"*/*/*/{jar.name}"))
        right = next((path for path in cached if file_sha256(path) == jar.sha256), None)
        if right is None:
            still.append(jar)
            damaged.extend(cached)
            continue
        target = fetch.folder / jar.path
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.part")
        shutil.copyfile(right, partial)
        partial.replace(target)
    return tuple(still), tuple(damaged)


def _run_ivy(fetch: Fetch) -> None:
    """One run of Ivy; raises unless it says that it got everything."""
    fetch.ivy.mkdir(parents=True, exist_ok=True)
    log = fetch.ivy / "fetch.log"
    log.unlink(missing_ok=True)
    ivy_file = fetch.ivy / "ivy.xml"
    ivy_file.write_text(importlib.resources.files(__package__).joinpath("ivy.xml").read_text())
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
            _complaint(log.read_text(errors="replace")),
            place="fetching jars",
            hint=f"about 60 MB come from the Maven repository, once; {_GO_ON} (log: {log})",
        )


def _watch(child: Child, log: Path, fetch: Fetch) -> None:
    """Tell the progress until Ivy ends; raises when it says nothing for too long."""
    started_at = changed_at = time.monotonic()
    before = sum(any((fetch.ivy / "cache").glob(f"*/*/*/{jar.name}")) for jar in fetch.jars)
    told, size = None, -1
    running = True
    while running:
        running = child.running  # asked before the log is read, so that its end is read too
        now = time.monotonic()
        if log.stat().st_size != size:
            size, changed_at = log.stat().st_size, now
            step = _step(log.read_text(errors="replace"), before, len(fetch.jars))
            if step != told:
                fetch.progress(step)
                told = step
        if now - changed_at > SILENCE_S_MAX or now - started_at > FETCH_S_MAX:
            raise UnavailableError(
                "the repository stopped answering", place="fetching jars", hint=_GO_ON
            )
        time.sleep(_POLL_S)


def _step(log: str, before: int, total: int) -> Step:
    """Where Ivy stands: first it looks modules up, then it downloads."""
    got = log.count("[SUCCESSFUL ]")
    if got:
        return Step("fetching jars", min(before + got, total), total)
    return Step(
        "looking up jars", min(len(re.findall(r"^\tfound ", log, re.MULTILINE)), total), total
    )


def _complaint(log: str) -> str:
    """What Ivy says went wrong, in one line."""
    told = re.findall(
        r"^\s*(?:::\s*)?(\S+#\S+;\S+: (?:not found|.*unresolved.*))", log, re.MULTILINE
    )
    if told:
        return f"the repository cannot be reached or lacks {told[0].split(':')[0]}"
    lines = [line.strip() for line in _read_lines(log) if line.strip()]
    return f"Ivy failed: {lines[-1] if lines else 'it said nothing'}"


def _read_lines(log: str) -> Iterator[str]:
    """Lines of a log without Ivy's rulers."""
    return (line for line in log.splitlines() if not re.fullmatch(r"[\s:|=-]*", line))


@functools.cache
def _ivy_jar() -> Path:
    found = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not found:
        raise EnvironmentProblem("PySpark has no Ivy in it", place=str(pyspark_jars()))
    return found[-1]
