"""Lookup of the Java runtime for Kafka, ZooKeeper and Spark, with a hint if there is none."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import EnvironmentProblem

OLDEST_VERSION = 17
"""The minimum of Spark 4 and Kafka 4."""

_ANSWER_WITHIN_S = 20.0
_HINT = (
    f"install a Java runtime, version {OLDEST_VERSION} or newer (Debian and Ubuntu: "
    "apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to one"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that is new enough."""

    executable: Path
    version: int
    build: str = ""
    """Identifies the build of Java: lines of the output of `java -version`."""


def parse_version(text: str) -> int | None:
    """The feature version in the output of `java -version`, or None.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_292"')
    8
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    first = int(found.group(1))
    # Up to Java 8 the version was written 1.8.
    return int(found.group(2)) if first == 1 and found.group(2) else first


def build_of(text: str) -> str:
    """The lines about the build in the output of `java -version`, without warnings.

    Modes are left out: they follow from options, not from the build.

    >>> build_of("OpenJDK Runtime Environment (build 17.0.15+6)")
    'OpenJDK Runtime Environment (build 17.0.15+6)'
    >>> build_of("OpenJDK 64-Bit Server VM (build 17.0.15+6, mixed mode, sharing)")
    'OpenJDK 64-Bit Server VM (build 17.0.15+6)'
    >>> build_of("Picked up JAVA_TOOL_OPTIONS: -Xmx1g")
    ''
    """
    lines = (line for line in text.splitlines() if re.search(r'version "|\(build ', line))
    return "\n".join(re.sub(r"(\(build [^,)]*),[^)]*\)", r"\1)", line) for line in lines)


def find_java(environment: Mapping[str, str]) -> Java:
    """The Java of `JAVA_HOME`, or else the first on `PATH`; Spark searches in the same order.

    Args:
        environment: the variables of the process, `os.environ` in a program.

    Raises:
        EnvironmentProblem: there is none, it does not run, or it is too old.
    """
    executable = _locate(environment)
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_WITHIN_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(
            f"Java cannot be run: {error}", place=str(executable), hint=_HINT
        ) from error
    printed = answer.stderr + answer.stdout
    version = parse_version(printed)
    if version is None:
        first_line = (printed.strip().splitlines() or ["nothing"])[0]
        raise EnvironmentProblem(
            f"java -version printed no version: {first_line}", place=str(executable), hint=_HINT
        )
    if version < OLDEST_VERSION:
        raise EnvironmentProblem(
            f"Java {version} is too old: {OLDEST_VERSION} or newer is needed",
            place=str(executable),
            hint=_HINT,
        )
    return Java(executable, version, build_of(printed))


def _locate(environment: Mapping[str, str]) -> Path:
    home = environment.get("JAVA_HOME", "")
    if home:
        executable = Path(home) / "bin" / "java"
        if not executable.is_file():
            raise EnvironmentProblem(
                "JAVA_HOME is set, but there is no bin/java in it", place=home, hint=_HINT
            )
        return executable
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is None:
        raise EnvironmentProblem("Java was not found on PATH", hint=_HINT)
    return Path(on_path)
