from pathlib import Path

import pytest

from brokers.embedded.java import find_java, parse_version
from pipeline.errors import EnvironmentProblem


def fake_java(folder: Path, prints: str) -> Path:
    """A program named java that prints these lines, in a folder for PATH."""
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{prints}\nEND\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_292"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025-09-16', 25),
        ("The operation could not be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_java_versions_are_parsed(text: str, version: int | None) -> None:
    """In the old and the new format; output without a version is no number."""
    assert parse_version(text) == version


def test_the_build_excludes_other_output_of_java(tmp_path: Path) -> None:
    """Some Javas print warnings, with a varying time, or the options that they read."""
    lines = 'openjdk version "17.0.15"\nOpenJDK Runtime Environment (build 17.0.15+6-Debian)'
    plain = fake_java(tmp_path / "plain", lines)
    warns = fake_java(
        tmp_path / "warns", f"[0.056s][warning][os] Duplicate cpuset\nPicked up X: -Xmx1g\n{lines}"
    )
    found = [find_java({"PATH": f"{java.parent}:/bin:/usr/bin"}) for java in (plain, warns)]
    assert [java.build for java in found] == [lines, lines]


def test_java_home_takes_precedence_over_the_path(tmp_path: Path) -> None:
    """As it does for Spark."""
    home = fake_java(tmp_path / "home" / "bin", 'openjdk version "21.0.1"')
    other = fake_java(tmp_path / "other", 'openjdk version "17.0.1"')
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": f"{other.parent}:/bin:/usr/bin"}
    java = find_java(environment)
    assert (java.executable, java.version) == (home, 21)


def test_an_old_java_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """The version found, the required one and how to install it."""
    program = fake_java(tmp_path / "bin", 'openjdk version "11.0.2"')
    with pytest.raises(EnvironmentProblem, match="Java 11 is too old: 17") as caught:
        find_java({"PATH": f"{program.parent}:/bin:/usr/bin"})
    assert caught.value.place == str(program)
    assert "install a Java runtime" in caught.value.hint


def test_a_missing_java_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """With the note that none is on the path."""
    with pytest.raises(EnvironmentProblem, match="not found on PATH") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "install a Java runtime" in caught.value.hint


def test_a_wrong_java_home_is_named(tmp_path: Path) -> None:
    """A `JAVA_HOME` without Java is not skipped: Spark would fail with it."""
    with pytest.raises(EnvironmentProblem, match="JAVA_HOME") as caught:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert caught.value.place == str(tmp_path)


def test_a_java_that_prints_no_version_is_quoted(tmp_path: Path) -> None:
    """The error contains its output."""
    program = fake_java(tmp_path / "bin", "No Java runtime present")
    with pytest.raises(EnvironmentProblem, match="No Java runtime present"):
        find_java({"PATH": f"{program.parent}:/bin:/usr/bin"})
