import doctest
import hashlib
import os
import re
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import pytest

from brokers.embedded import jars
from brokers.embedded.jars import Jar, jar_folder, manifest, spark_jars, unverified, verify
from pipeline.errors import EnvironmentProblem

CONTENT = b"a jar"
JAR = Jar("kafka/one-1.0.jar", hashlib.sha256(CONTENT).hexdigest())


def write(folder: Path, jar: Jar, content: bytes) -> Path:
    """Put a file where a jar belongs."""
    path = folder / jar.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(jars).failed == 0


def test_the_list_has_every_direct_dependency_in_its_version() -> None:
    """What `ivy.xml` asks for is in `jars.sha256`: the two files were changed together."""
    names = {jar.name for jar in manifest()}
    document = ET.fromstring(files("brokers.embedded").joinpath("ivy.xml").read_text())  # noqa: S314 - our own file
    asked = {f"{d.get('name')}-{d.get('rev')}.jar" for d in document.iter("dependency")}
    asked |= {f"{o.get('module')}-{o.get('rev')}.jar" for o in document.iter("override")}
    assert asked <= names
    assert len(asked) == 5


def test_the_list_is_well_formed() -> None:
    """Every line has a checksum and a place; no name comes twice, since Ivy's cache is by name."""
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in manifest())
    assert {jar.path.partition("/")[0] for jar in manifest()} == {"kafka", "spark"}
    assert len({jar.name for jar in manifest()}) == len(manifest())


def test_a_right_jar_is_hashed_once(tmp_path: Path) -> None:
    """After it was verified, a look at size and time is enough."""
    write(tmp_path, JAR, CONTENT)
    assert unverified(tmp_path, (JAR,)) == (JAR,)
    assert verify(tmp_path, (JAR,)) == ()
    assert unverified(tmp_path, (JAR,)) == ()


def test_a_change_after_the_check_is_noticed(tmp_path: Path) -> None:
    """Other content of the same size, with a newer time, is no longer trusted, and found wrong."""
    path = write(tmp_path, JAR, CONTENT)
    verify(tmp_path, (JAR,))
    path.write_bytes(b"A JAR")
    os.utime(path, ns=(1, 1))
    assert unverified(tmp_path, (JAR,)) == (JAR,)
    assert verify(tmp_path, (JAR,)) == (JAR,)


def test_a_wrong_or_missing_jar_is_returned_and_kept(tmp_path: Path) -> None:
    """Verifying tells; what to delete is decided by whoever fetches."""
    missing = Jar("spark/two-1.0.jar", JAR.sha256)
    path = write(tmp_path, JAR, b"something else")
    assert verify(tmp_path, (JAR, missing)) == (JAR, missing)
    assert path.exists()


def test_a_damaged_stamp_only_costs_a_new_check(tmp_path: Path) -> None:
    """A stamp that cannot be read counts as none."""
    write(tmp_path, JAR, CONTENT)
    verify(tmp_path, (JAR,))
    (tmp_path / "checked.json").write_text("{")
    assert unverified(tmp_path, (JAR,)) == (JAR,)
    assert verify(tmp_path, (JAR,)) == ()


def test_asking_for_jars_that_were_not_fetched_says_so(tmp_path: Path) -> None:
    """The error counts what is missing and says what fetches it."""
    with pytest.raises(EnvironmentProblem, match="57 of 57 jars are missing") as caught:
        spark_jars(tmp_path)
    assert caught.value.place == str(jar_folder(tmp_path))
    assert "medusa up" in caught.value.hint


def test_zookeeper_is_found_inside_pyspark() -> None:
    """The class path has the server, its records and a binding for its log."""
    names = {jars.artifact(Path(part).name) for part in jars.zookeeper_classpath().split(":")}
    assert {"zookeeper", "zookeeper-jute", "log4j-slf4j2-impl", "log4j-core"} <= names
