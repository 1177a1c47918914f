"""Command lines of the peers' Java programs, and of the compiler of the JDK."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SHARED = "Peer"
HEAP = "1g"
"""As of the plain script's driver."""
CORES = 2
COMPILER = "jdk.compiler"
NO_COMPILER = (
    "Kafka Streams and Flink run programs that are compiled here, but {java} is a Java runtime"
    " without a compiler: install a JDK of version 17 or newer (Debian and Ubuntu: apt-get install"
    " openjdk-17-jdk-headless; macOS: brew install openjdk@17), or set JAVA_HOME to one"
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A stream processor: its main class, which is also its source file, and options of its JVM."""

    main: str
    jvm: tuple[str, ...] = ()


PEERS: Mapping[str, Peer] = {
    "kafka-streams": Peer("KafkaStreamsPeer"),
    "flink": Peer(
        "FlinkPeer",
        tuple(
            f"--add-opens=java.base/{package}=ALL-UNNAMED"
            for package in ("java.lang", "java.util", "java.time")
        ),
    ),
}
"""By the name of the side, which is also the folder of its jars."""


@dataclass(frozen=True, slots=True)
class Job:
    """Parameters of a peer's job.

    Args:
        name: `stateless`, `window` or `chain`.
        run: unique name, the application id or the consumer group.
        bootstrap_servers: Kafka.
        source: input topic.
        targets: output topics, one for each window of a chain.
        schema_id: of the readings.
        scratch: folder of the state, with the schemas' files.
        grace_ms: how long Kafka Streams waits for late readings.
        standbys: how many standby replicas Kafka Streams keeps of each state.
        session_ms: how long an instance of Kafka Streams may be silent.
        restore: the `savepoint` of another job, whose savepoint Flink starts from, once it is
            there; None: it starts at once, without state.
    """

    name: str
    run: str
    bootstrap_servers: str
    source: str
    targets: tuple[str, ...]
    schema_id: int
    scratch: Path
    grace_ms: int
    standbys: int = 0
    session_ms: int = 45_000
    restore: Path | None = None

    @property
    def stop(self) -> Path:
        """A file; once it exists, Flink stops with a savepoint."""
        return self.scratch / "stop"

    @property
    def savepoint(self) -> Path:
        """The file that then contains the path of the savepoint."""
        return self.scratch / "savepoint"

    @property
    def reading_schema(self) -> Path:
        """The file of the readings' schema."""
        return self.scratch / "reading.avsc"

    @property
    def result_schema(self) -> Path:
        """The file of the results' schema."""
        return self.scratch / "result.avsc"

    def arguments(self) -> list[str]:
        """Arguments of the program."""
        named = {
            "job": self.name,
            "name": self.run,
            "bootstrap-servers": self.bootstrap_servers,
            "source": self.source,
            "targets": ",".join(self.targets),
            "schema-id": str(self.schema_id),
            "reading-schema": str(self.reading_schema),
            "result-schema": str(self.result_schema),
            "scratch": str(self.scratch),
            "grace-ms": str(self.grace_ms),
            "standbys": str(self.standbys),
            "session-ms": str(self.session_ms),
            "cores": str(CORES),
            "restore": str(self.restore or ""),
            "stop": str(self.stop),
            "savepoint": str(self.savepoint),
        }
        return [word for name, value in named.items() for word in (f"--{name}", value)]


def has_compiler(modules: str) -> bool:
    r"""Whether the output of `java --list-modules` contains the compiler.

    >>> has_compiler("java.xml@17.0.15\njdk.compiler@17.0.15\n")
    True
    >>> has_compiler("java.compiler@17.0.15\njdk.net@17.0.15\n")
    False
    """
    return re.search(rf"^{re.escape(COMPILER)}(@|$)", modules, re.MULTILINE) is not None


def compile_command(java: Path, peer: Peer, jars: Sequence[Path], classes: Path) -> list[str]:
    """The command that compiles a peer's program into a folder."""
    sources = [str(HERE / f"{name}.java") for name in (SHARED, peer.main)]
    compiler = [str(java), "-m", f"{COMPILER}/com.sun.tools.javac.Main"]
    return [*compiler, "-d", str(classes), "-cp", _class_path(jars), *sources]


def run_command(java: Path, peer: Peer, jars: Sequence[Path], classes: Path, job: Job) -> list[str]:
    """The command that runs a peer's job, with the collector and the heap of the plain script."""
    jvm = [f"-Xmx{HEAP}", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={job.scratch}"]
    jvm += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *peer.jvm]
    class_path = _class_path((classes, *jars))
    return [str(java), *jvm, "-cp", class_path, peer.main, *job.arguments()]


def _class_path(paths: Sequence[Path]) -> str:
    return ":".join(str(path) for path in paths)
