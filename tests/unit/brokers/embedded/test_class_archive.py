import sys
from pathlib import Path

import pytest

from brokers.embedded import class_archive
from brokers.embedded.class_archive import archive_path, ensure_archive, java_options
from brokers.embedded.jars import jar_folder
from brokers.embedded.java import Java
from brokers.embedded.progress import Step

JAVA = Java(Path("java"), 17, "version 17.0.1")
MAKES = "import sys, pathlib; pathlib.Path(sys.argv[2]).write_text(sys.argv[1])"
FAILS = "import sys; print('no such option'); sys.exit(3)"
MAKES_NOTHING = "pass"
NEVER_ENDS = "import sys, time, pathlib; pathlib.Path(sys.argv[2]).touch(); time.sleep(60)"


def program(text: str) -> tuple[str, ...]:
    """A program in place of the one that opens a session."""
    return (sys.executable, "-c", text)


def test_an_archive_is_created_once_and_then_used(tmp_path: Path) -> None:
    """The program gets the cache and a path; the file that it writes there is kept."""
    assert java_options(tmp_path, JAVA) == ""
    steps: list[Step] = []
    ensure_archive(tmp_path, JAVA, program(MAKES), steps.append)
    archive = archive_path(tmp_path, JAVA)
    assert archive.read_text() == str(tmp_path)
    assert f'"-XX:SharedArchiveFile={archive}"' in java_options(tmp_path, JAVA)
    assert len(steps) == 1
    ensure_archive(tmp_path, JAVA, program(FAILS), steps.append)
    assert len(steps) == 1
    assert not list(tmp_path.rglob("*.part"))


def test_another_java_or_other_jars_need_another_archive(tmp_path: Path) -> None:
    """Java would refuse it."""
    path = archive_path(tmp_path, JAVA)
    assert archive_path(tmp_path, Java(JAVA.executable, 17, "version 17.0.2")) != path
    jar = jar_folder(tmp_path) / "spark" / "one-1.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"jar")
    assert archive_path(tmp_path, JAVA) != path


@pytest.mark.parametrize("text", [FAILS, MAKES_NOTHING])
def test_a_failed_archive_is_no_error_and_not_retried(tmp_path: Path, text: str) -> None:
    """The reason is in a file next to it; without that file it is retried."""
    steps: list[Step] = []
    ensure_archive(tmp_path, JAVA, program(text), steps.append)
    failed = archive_path(tmp_path, JAVA).with_suffix(".failed")
    assert "it ended with exit code" in failed.read_text()
    assert str(failed) in steps[-1].what
    assert java_options(tmp_path, JAVA) == ""
    ensure_archive(tmp_path, JAVA, program(MAKES), steps.append)
    assert len(steps) == 2
    failed.unlink()
    ensure_archive(tmp_path, JAVA, program(MAKES), steps.append)
    assert java_options(tmp_path, JAVA)


def test_a_program_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partial file is no archive."""
    monkeypatch.setattr(class_archive, "_CREATED_WITHIN_S", 0.5)
    ensure_archive(tmp_path, JAVA, program(NEVER_ENDS))
    archive = archive_path(tmp_path, JAVA)
    assert archive.with_suffix(".failed").exists()
    assert not archive.exists()
    assert not list(tmp_path.rglob("*.part"))


def test_a_read_only_cache_does_not_prevent_a_start(tmp_path: Path) -> None:
    """The fetch of jars reports it; an archive only makes starts faster."""
    (tmp_path / "classes").touch()
    steps: list[Step] = []
    ensure_archive(tmp_path, JAVA, program(MAKES), steps.append)
    assert "so it starts slower: " in steps[-1].what


def test_unusable_archives_are_removed(tmp_path: Path) -> None:
    """Those of a former or missing PySpark; one of another installation stays."""
    elsewhere, gone = tmp_path / "elsewhere", tmp_path / "gone"
    elsewhere.mkdir()
    made = []
    for build, jars in (("1", None), ("2", elsewhere), ("3", gone)):
        java = Java(JAVA.executable, 17, build)
        folder = tmp_path / build
        ensure_archive(folder, java, program(MAKES))
        made.append(archive_path(folder, java))
        if jars is not None:
            made[-1].with_suffix(".about").write_text(f"0\n{jars}\n")
    classes = tmp_path / "classes"
    classes.mkdir()
    for archive in made:
        for path in archive.parent.glob(f"{archive.stem}.*"):
            path.rename(classes / path.name)
    ensure_archive(tmp_path, JAVA, program(MAKES))
    assert {path.name for path in classes.glob("*.jsa")} == {
        made[1].name,
        archive_path(tmp_path, JAVA).name,
    }


def test_a_truncated_archive_is_created_again(tmp_path: Path) -> None:
    """Java would verify its contents, but crashes when there are too few of them."""
    ensure_archive(tmp_path, JAVA, program(MAKES))
    archive = archive_path(tmp_path, JAVA)
    assert java_options(tmp_path, JAVA)
    archive.write_text("cut")
    assert java_options(tmp_path, JAVA) == ""
    ensure_archive(tmp_path, JAVA, program(MAKES))
    assert java_options(tmp_path, JAVA)
    archive.with_suffix(".about").write_text("")
    assert java_options(tmp_path, JAVA) == ""
