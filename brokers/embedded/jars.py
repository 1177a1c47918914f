"""Manifest of the jars that PySpark does not contain: checksums, verification, class paths.

`jars.sha256` lists every file with its checksum. A file is hashed once, when it is downloaded;
after that its size and modification time are compared, so checking all takes a few milliseconds.
"""

import functools
import hashlib
import importlib.resources
import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import EnvironmentProblem

STAMP_FORMAT = 1
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of the manifest: its path below the folder (`kafka/name.jar`) and its checksum."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """The file name alone."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched together: the text of their Ivy file, and of their manifest."""

    ivy_xml: str
    checksums: str

    @property
    def jars(self) -> tuple[Jar, ...]:
        """Every jar of the manifest."""
        return parse_manifest(self.checksums)

    def folder(self, cache: Path) -> Path:
        """The folder of the jars of this manifest; another manifest has another folder."""
        digest = hashlib.sha256(self.checksums.encode()).hexdigest()
        return cache.expanduser() / "jars" / digest[:12]


def parse_manifest(text: str) -> tuple[Jar, ...]:
    """Parse lines in the format of `sha256sum`.

    >>> parse_manifest("ab  kafka/a.jar")
    (Jar(path='kafka/a.jar', sha256='ab'),)
    """
    return tuple(
        Jar(path, checksum) for checksum, path in (line.split() for line in text.splitlines())
    )


@functools.cache
def embedded_jars() -> JarSet:
    """The jars of the embedded stack and of Spark's Kafka connector."""
    files = importlib.resources.files(__package__)
    return JarSet(files.joinpath("ivy.xml").read_text(), files.joinpath("jars.sha256").read_text())


@functools.cache
def manifest() -> tuple[Jar, ...]:
    """Every jar that this version needs."""
    return embedded_jars().jars


def jar_folder(cache: Path) -> Path:
    """The folder of the jars of this version's manifest."""
    return embedded_jars().folder(cache)


def unverified(folder: Path, jars: tuple[Jar, ...]) -> tuple[Jar, ...]:
    """The jars that are missing or changed since they were hashed; reads no content."""
    stamp = _read_stamp(folder)
    return tuple(jar for jar in jars if stamp.get(jar.path, ()) != _size_mtime(folder / jar.path))


def verify(folder: Path, jars: tuple[Jar, ...]) -> tuple[Jar, ...]:
    """Hash the unverified jars, store which are right, and return those that are not.

    Nothing is deleted: a returned jar that exists has the wrong content.
    """
    stamp = dict(_read_stamp(folder))
    wrong = []
    for jar in unverified(folder, jars):
        path = folder / jar.path
        if path.is_file() and file_sha256(path) == jar.sha256:
            stamp[jar.path] = _size_mtime(path)
        else:
            wrong.append(jar)
            stamp.pop(jar.path, None)
    if folder.is_dir():
        partial = folder / "checked.json.part"
        partial.write_text(json.dumps({"format": STAMP_FORMAT, "jars": stamp}, indent=1))
        partial.replace(folder / "checked.json")
    return tuple(wrong)


def file_sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def spark_jars(cache: Path) -> tuple[Path, ...]:
    """The jars that a Spark session needs for Kafka and Avro, without those in PySpark.

    Raises:
        EnvironmentProblem: they have not been downloaded, or were damaged since.
    """
    in_wheel = {artifact(path.name) for path in pyspark_jars().glob("*.jar")}
    return tuple(path for path in _fetched(cache, "spark") if artifact(path.name) not in in_wheel)


def kafka_classpath(cache: Path) -> str:
    """The class path of the embedded broker, with PySpark's binding of slf4j to log4j 2.

    Kafka includes slf4j 1.7 without a binding; the 2.x interface is compatible and has a binding
    in PySpark, so the 1.7 jar is left out.

    Raises:
        EnvironmentProblem: the jars have not been downloaded, or were damaged since.
    """
    kept = [path for path in _fetched(cache, "kafka") if artifact(path.name) != "slf4j-api"]
    return _class_path((*kept, *_from_pyspark("slf4j-api", "log4j-slf4j2-impl")))


def zookeeper_classpath() -> str:
    """The class path of the embedded ZooKeeper, all of whose jars are in PySpark."""
    return _class_path(
        _from_pyspark(
            "zookeeper",
            "zookeeper-jute",
            "slf4j-api",
            "log4j-slf4j2-impl",
            "log4j-api",
            "log4j-core",
            "metrics-core",
            "snappy-java",
            "commons-io",
            "netty-buffer",
            "netty-codec",
            "netty-common",
            "netty-handler",
            "netty-resolver",
            "netty-transport",
        )
    )


def pyspark_jars() -> Path:
    """The folder of the jars in the installed PySpark; does not import it.

    Raises:
        EnvironmentProblem: PySpark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise EnvironmentProblem("PySpark is not installed", hint="install medusa-streams again")
    return Path(found.submodule_search_locations[0]) / "jars"


def artifact(file_name: str) -> str:
    """A jar's name without its version.

    >>> artifact("spark-sql-kafka-0-10_2.13-4.2.0.jar")
    'spark-sql-kafka-0-10_2.13'
    """
    found = re.fullmatch(r"(.+)-\d[\w.]*\.jar", file_name)
    return found.group(1) if found else file_name.removesuffix(".jar")


def _fetched(cache: Path, configuration: str) -> tuple[Path, ...]:
    folder = jar_folder(cache)
    if missing := unverified(folder, manifest()):
        raise EnvironmentProblem(
            f"{len(missing)} of {len(manifest())} jars are missing or were changed",
            place=str(folder),
            hint="medusa up fetches them",
        )
    return tuple(
        folder / jar.path for jar in manifest() if jar.path.startswith(f"{configuration}/")
    )


def _from_pyspark(*artifacts: str) -> tuple[Path, ...]:
    return tuple(
        path for path in sorted(pyspark_jars().glob("*.jar")) if artifact(path.name) in artifacts
    )


def _class_path(paths: tuple[Path, ...]) -> str:
    return ":".join(str(path) for path in paths)


def _size_mtime(path: Path) -> tuple[int, ...]:
    """Size and modification time; a value that no stamp contains if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return (-1,)
    return (status.st_size, status.st_mtime_ns)


def _read_stamp(folder: Path) -> dict[str, tuple[int, ...]]:
    """Size and modification time of the verified jars; empty without a readable stamp."""
    try:
        stamp = json.loads((folder / "checked.json").read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(stamp, dict) or stamp.get("format") != STAMP_FORMAT:
        return {}
    return {path: tuple(size_mtime) for path, size_mtime in stamp["jars"].items()}
