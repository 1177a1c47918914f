import doctest
import hashlib
import os
import re
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import pytest

from brokers.embedded import jars
from brokers.embedded.jars import (
    Jar,
    JarSet,
    jar_folder,
    manifest,
    spark_jars,
    unverified,
    verify,
)
from pipeline.errors import EnvironmentProblem

CONTENT = b"a jar"
JAR = Jar("kafka/one-1.0.jar", hashlib.sha256(CONTENT).hexdigest())


def write(folder: Path, jar: Jar, content: bytes) -> Path:
    """Write a file in the place of a jar."""
    path = folder / jar.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(jars).failed == 0


def test_the_list_has_every_direct_dependency_in_its_version() -> None:
    """The dependencies of `ivy.xml` are in `jars.sha256`: the two files were changed together."""
    names = {jar.name for jar in manifest()}
    document = ET.fromstring(files("brokers.embedded").joinpath("ivy.xml").read_text())  # noqa: S314 - our own file
    required = {f"{d.get('name')}-{d.get('rev')}.jar" for d in document.iter("dependency")}
    required |= {f"{o.get('module')}-{o.get('rev')}.jar" for o in document.iter("override")}
    assert required <= names
    assert len(required) == 5


def test_the_list_is_well_formed() -> None:
    """Every line has a checksum and a place; names are unique, since Ivy's cache is by name."""
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in manifest())
    assert {jar.path.partition("/")[0] for jar in manifest()} == {"kafka", "spark"}
    assert len({jar.name for jar in manifest()}) == len(manifest())


def test_another_manifest_has_another_folder(tmp_path: Path) -> None:
    """Sets of jars in one cache do not mix."""
    other = JarSet("<ivy-module/>", f"{JAR.sha256}  {JAR.path}\n")
    assert other.jars == (JAR,)
    assert other.folder(tmp_path) != jar_folder(tmp_path)


def test_a_verified_jar_is_hashed_once(tmp_path: Path) -> None:
    """Later checks compare only size and time."""
    write(tmp_path, JAR, CONTENT)
    assert unverified(tmp_path, (JAR,)) == (JAR,)
    assert verify(tmp_path, (JAR,)) == ()
    assert unverified(tmp_path, (JAR,)) == ()


def test_a_change_after_verification_is_detected(tmp_path: Path) -> None:
    """Other content of the same size, with a newer time, is hashed again, and is wrong."""
    path = write(tmp_path, JAR, CONTENT)
    verify(tmp_path, (JAR,))
    path.write_bytes(b"A JAR")
    os.utime(path, ns=(1, 1))
    assert unverified(tmp_path, (JAR,)) == (JAR,)
    assert verify(tmp_path, (JAR,)) == (JAR,)


def test_a_wrong_or_missing_jar_is_returned_and_kept(tmp_path: Path) -> None:
    """Verification only reports; the fetch decides what to delete."""
    missing = Jar("spark/two-1.0.jar", JAR.sha256)
    path = write(tmp_path, JAR, b"something else")
    assert verify(tmp_path, (JAR, missing)) == (JAR, missing)
    assert path.exists()


def test_a_damaged_stamp_only_costs_a_new_check(tmp_path: Path) -> None:
    """An unreadable stamp counts as none."""
    write(tmp_path, JAR, CONTENT)
    verify(tmp_path, (JAR,))
    (tmp_path / "checked.json").write_text("{")
    assert unverified(tmp_path, (JAR,)) == (JAR,)
    assert verify(tmp_path, (JAR,)) == ()


def test_missing_jars_are_an_error_with_the_remedy(tmp_path: Path) -> None:
    """It contains their number and the command that fetches them."""
    with pytest.raises(EnvironmentProblem, match="57 of 57 jars are missing") as caught:
        spark_jars(tmp_path)
    assert caught.value.place == str(jar_folder(tmp_path))
    assert "medusa up" in caught.value.hint


def test_zookeeper_is_found_inside_pyspark() -> None:
    """The class path has the server, its records and a binding for its log."""
    names = {jars.artifact(Path(part).name) for part in jars.zookeeper_classpath().split(":")}
    assert {"zookeeper", "zookeeper-jute", "log4j-slf4j2-impl", "log4j-core"} <= names
