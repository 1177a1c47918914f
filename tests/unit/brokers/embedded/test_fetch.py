import hashlib
from pathlib import Path

import pytest

from brokers.embedded import fetch
from brokers.embedded.fetch import Fetch, ensure_jars, fetch_missing
from brokers.embedded.jars import JarSet, unverified
from brokers.embedded.java import Java
from brokers.embedded.progress import Step, silent
from pipeline.errors import EnvironmentProblem, UnavailableError

FAKE_IVY = """\
#!/bin/sh
# Stands for `java -jar ivy.jar … -cache DIR`: copies from a folder, as far as it is not there yet.
repository="{repository}"
echo run >>"$repository/runs"
while [ "$1" != "-cache" ]; do shift; done
jars="$2/org.example/module/jars"
mkdir -p "$jars"
[ ! -e "$repository/silent" ] || exec sleep 60
for jar in "$repository"/*.jar; do
    target="$jars/$(basename "$jar")"
    [ -e "$target" ] && continue
    cp "$jar" "$target"
    printf '\\t[SUCCESSFUL ] org.example#module;1!%s (1ms)\\n' "$(basename "$jar")"
done
[ ! -e "$repository/broken" ] || {{ printf '\\t\\t:: org.example#two;1: not found\\n'; exit 1; }}
"""


def content(name: str) -> bytes:
    """The content of a jar of this name."""
    return f"the jar {name}".encode()


class Repository:
    """A folder that a fake Ivy copies from, and a cache that it copies to."""

    def __init__(self, folder: Path, names: tuple[str, ...] = ("one-1.jar", "two-1.jar")) -> None:
        self.folder = folder / "repository"
        self.folder.mkdir()
        self.cache = folder / "cache"
        self.java = Java(folder / "java", 17)
        self.java.executable.write_text(FAKE_IVY.format(repository=self.folder))
        self.java.executable.chmod(0o755)
        checksums = (f"{hashlib.sha256(content(name)).hexdigest()}  kafka/{name}" for name in names)
        self.jar_set = JarSet("<ivy-module/>", "\n".join(checksums))
        self.jars = self.jar_set.jars
        self.steps: list[Step] = []

    def provide(self, *names: str) -> None:
        """Provide these jars with the right content."""
        for name in names:
            (self.folder / name).write_bytes(content(name))

    def mark(self, word: str) -> Path:
        """Select a behaviour of the fake Ivy."""
        (self.folder / word).touch()
        return self.folder / word

    def fetch(self) -> Fetch:
        """Fetch from this repository."""
        found = Fetch(self.cache, self.java, self.jar_set, self.steps.append)
        found.folder.mkdir(parents=True, exist_ok=True)
        fetch_missing(found)
        return found

    @property
    def runs(self) -> int:
        """The number of runs of Ivy."""
        runs = self.folder / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    def cached(self, name: str) -> Path:
        """The path of a jar in Ivy's cache."""
        return self.cache / "ivy" / "cache" / "org.example" / "module" / "jars" / name


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One with two jars, none of them provided yet."""
    return Repository(tmp_path)


def test_jars_are_fetched_once(repository: Repository) -> None:
    """After a fetch all are present and verified, and Ivy is not run again."""
    repository.provide("one-1.jar", "two-1.jar")
    done = repository.fetch()
    assert not unverified(done.folder, repository.jars)
    repository.fetch()
    assert repository.runs == 1


def test_an_interrupted_fetch_continues_with_the_missing_jars(repository: Repository) -> None:
    """Jars fetched before the interruption are not requested again."""
    repository.provide("one-1.jar")
    broken = repository.mark("broken")
    with pytest.raises(UnavailableError, match=r"lacks org\.example#two") as caught:
        repository.fetch()
    assert "goes on with the files still missing" in caught.value.hint
    (repository.folder / "one-1.jar").unlink()
    broken.unlink()
    repository.provide("two-1.jar")
    done = repository.fetch()
    assert not unverified(done.folder, repository.jars)


def test_a_lost_or_damaged_jar_is_restored_offline(repository: Repository) -> None:
    """From Ivy's own cache."""
    repository.provide("one-1.jar", "two-1.jar")
    done = repository.fetch()
    (done.folder / "kafka" / "one-1.jar").unlink()
    (done.folder / "kafka" / "two-1.jar").write_bytes(b"damaged")
    repository.fetch()
    assert not unverified(done.folder, repository.jars)
    assert repository.runs == 1


def test_a_damaged_download_is_fetched_again(repository: Repository) -> None:
    """A wrong checksum in Ivy's cache costs one more fetch."""
    repository.provide("one-1.jar", "two-1.jar")
    wrong = repository.cached("two-1.jar")
    wrong.parent.mkdir(parents=True)
    wrong.write_bytes(b"half of")
    done = repository.fetch()
    assert not unverified(done.folder, repository.jars)
    assert repository.runs == 1


def test_a_repeatedly_wrong_jar_is_named_and_deleted(repository: Repository) -> None:
    """Wrong content twice is an error that names the file; no wrong file is kept."""
    repository.provide("one-1.jar", "two-1.jar")
    (repository.folder / "two-1.jar").write_bytes(b"not what it should be")
    with pytest.raises(EnvironmentProblem, match=r"two-1\.jar came with the wrong checksum"):
        repository.fetch()
    assert repository.runs == 2
    assert not repository.cached("two-1.jar").exists()
    assert not list(repository.cache.glob("jars/*/kafka/two-1.jar"))


def test_a_repository_without_a_jar_is_an_error(repository: Repository) -> None:
    """Ivy may succeed although a jar is missing."""
    repository.provide("one-1.jar")
    with pytest.raises(UnavailableError, match=r"did not deliver two-1\.jar"):
        repository.fetch()


def test_a_fetch_from_an_unresponsive_repository_times_out(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ivy is ended, too."""
    monkeypatch.setattr(fetch, "SILENCE_S_MAX", 0.3)
    repository.mark("silent")
    with pytest.raises(UnavailableError, match="stopped answering"):
        repository.fetch()


def test_progress_includes_earlier_jars(tmp_path: Path) -> None:
    """The last step is all of all."""
    repository = Repository(tmp_path, ("one-1.jar", "two-1.jar", "three-1.jar"))
    repository.provide("one-1.jar", "two-1.jar", "three-1.jar")
    before = repository.cached("one-1.jar")
    before.parent.mkdir(parents=True)
    before.write_bytes(content("one-1.jar"))
    repository.fetch()
    assert repository.steps[-1] == Step("fetching jars", 3, 3)


def test_a_read_only_cache_is_an_environment_problem(tmp_path: Path) -> None:
    """The error names the folder and the setting."""
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="cache folder cannot be used") as caught:
        ensure_jars(tmp_path / "file" / "cache", lambda: Java(tmp_path, 17), silent)
    assert "MEDUSA_CACHE" in caught.value.hint
