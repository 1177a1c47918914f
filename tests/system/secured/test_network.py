"""A network on secured servers by settings alone, without a leak of secrets."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline.cli.project import load_project
from pipeline.ids import TopicName
from pipeline.names import Znodes
from schemas.rest.access import Access, Role, User
from schemas.server import Certificate, Guard, RegistryServer
from tests.certificates import LOOPBACK, Authority
from tests.conftest import WaitFor
from tests.system.secured.servers import (
    CLIENT_KEY_PASSWORD,
    PASSWORD,
    STRANGER,
    STRANGER_PASSWORD,
    TOPIC_RULES,
    USER,
    Secured,
)
from tests.system.support import kill

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

REGISTRY_PASSWORD = "password-of-the-registry"
SECRETS = (PASSWORD, CLIENT_KEY_PASSWORD, REGISTRY_PASSWORD)
CALL_WITHIN_S = 150.0
READY_WITHIN_S = 150.0
STARTED = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
NETWORK = """
network: guarded
streams:
  readings:
    topic: guarded-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 2
boxes:
  high: {filter: readings, where: value % 2 = 0}
outputs: {high: {topic: guarded-out, partitions: 2}}
"""


@dataclass
class Guarded:
    """A project on secured servers."""

    folder: Path
    environment: Mapping[str, str]
    printed: list[str] = field(default_factory=list)

    def command(self, *words: str) -> list[str]:
        """Command line of a `medusa` verb."""
        return [sys.executable, "-P", "-m", "pipeline.cli.main", *words]

    def call(
        self, *words: str, stdin: str = "", changes: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a verb; all of its output is stored."""
        done = subprocess.run(
            self.command(*words),
            input=stdin,
            env={**self.environment, **(changes or {})},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=CALL_WITHIN_S,
            check=False,
        )
        self.printed += [done.stdout, done.stderr]
        return done

    def start_node(self, wait_for: WaitFor) -> Child:
        """Start a node and wait until it is ready to claim fragments."""
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        command = self.command("node", "start", "--verbose", f"--ready-file={ready}")
        node = start_child(
            ChildSpec(
                "node",
                tuple(command),
                self.folder / "node.out",
                self.folder,
                environment=tuple(self.environment.items()),
            )
        )

        def up() -> bool:
            assert node.running, (self.folder / "node.out").read_text()[-4000:]
            return ready.exists()

        wait_for(up, "the node is up", within_s=READY_WITHIN_S)
        return node

    def values(self) -> list[int]:
        """The values in the output topic."""
        done = self.call("tail", "guarded-out", "--no-follow", "-o", "json")
        assert done.returncode == 0, done.stderr
        return sorted(json.loads(line)["value"]["value"] for line in done.stdout.splitlines())


@contextmanager
def registry(settings: Mapping[str, Any], secured: Secured) -> Iterator[str]:
    """Medusa's registry on the same ZooKeeper, with HTTPS and a login."""
    found = load_project(settings, {}, Path("/")).settings
    store = ZooKeeperStore.connect(zookeeper_servers(found), 10.0)
    proof = secured.authority.sign("registry")
    access = Access((User(USER, REGISTRY_PASSWORD, {"": Role.ADMIN}),))
    guard = Guard(access, Certificate(proof.certificate, proof.key))
    server = RegistryServer(store, LOOPBACK, 0, names=Znodes(""), guard=guard)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
        store.close()


@pytest.fixture(scope="module")
def guarded(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory, jar_cache: Path
) -> Iterator[Guarded]:
    """A project with settings for all three servers; one secret in each form of reference."""
    folder = tmp_path_factory.mktemp("guarded")
    ca = str(secured.authority.ca)
    (folder / "secrets").mkdir()
    (folder / "secrets" / "kafka").write_text(PASSWORD + "\n", encoding="utf-8")
    zookeeper = {
        "zookeeper.connect": secured.address("secure") + "/guarded",
        "zookeeper.user": USER,
        "zookeeper.password": PASSWORD,
        "zookeeper.tls.ca": ca,
        "zookeeper.tls.certificate": str(secured.client.certificate),
        "zookeeper.tls.key": str(secured.client.key),
        "zookeeper.tls.key_password": CLIENT_KEY_PASSWORD,
    }
    with registry(zookeeper, secured) as url:
        settings = {
            **zookeeper,
            "data": "data",
            "cache": str(jar_cache),
            "kafka.bootstrap_servers": secured.address("sasl_ssl"),
            "kafka.security_protocol": "SASL_SSL",
            "kafka.sasl_mechanism": "SCRAM-SHA-512",
            "kafka.user": USER,
            "kafka.password": "${file:secrets/kafka}",
            "kafka.tls.ca": ca,
            "zookeeper.password": "${env:OF_ZOOKEEPER}",
            "registry.url": url,
            "registry.user": USER,
            "registry.password": REGISTRY_PASSWORD,
            "registry.tls.ca": ca,
        }
        (folder / "medusa.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        (folder / "network.yaml").write_text(NETWORK, encoding="utf-8")
        (folder / "reading.avsc").write_text(json.dumps(SCHEMA), encoding="utf-8")
        # As a cluster's defaults may set it: all of Spark's output is logged.
        spark = folder / "spark"
        spark.mkdir()
        (folder / "events").mkdir()
        (spark / "spark-defaults.conf").write_text(
            f"spark.eventLog.enabled true\nspark.eventLog.dir {(folder / 'events').as_uri()}\n"
        )
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path.cwd()),
            "OF_ZOOKEEPER": PASSWORD,
            "SPARK_CONF_DIR": str(spark),
            "XDG_CONFIG_HOME": str(folder),
        }
        yield Guarded(folder, environment)


def lines(first: int, count: int) -> str:
    """Readings of the last minutes as JSON lines: Kafka deletes results older than `retention`."""
    found = (
        {"sensor": "a", "value": value, "at": (STARTED + timedelta(seconds=value)).isoformat()}
        for value in range(first, first + count)
    )
    return "\n".join(json.dumps(one) for one in found)


def files_with_secrets(folder: Path, secrets: tuple[str, ...]) -> list[str]:
    """The files below a folder that contain a secret, plain or with JSON or Java quoting."""
    quoted = {
        json.dumps(secret, ensure_ascii=plain)[1:-1]
        for secret in secrets
        for plain in (True, False)
    }
    patterns = {text.encode() for text in quoted | set(secrets)}
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(one in path.read_bytes() for one in patterns)
    ]


def command_lines() -> list[str]:
    """The command lines of all processes of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_a_secured_network_survives_a_crash_and_leaks_no_secret(
    guarded: Guarded, wait_for: WaitFor
) -> None:
    """Results are exactly once, also after a kill; no password is copied into any other file."""
    node = guarded.start_node(wait_for)
    try:
        deployed = guarded.call("deploy", "--yes")
        assert deployed.returncode == 0, deployed.stderr
        assert guarded.call("produce", "readings", stdin=lines(0, 100)).returncode == 0
        wait_for(lambda: len(guarded.values()) >= 50, "the first results", within_s=90.0)
        assert guarded.call("produce", "readings", stdin=lines(100, 100)).returncode == 0
        kill(node)
        node = guarded.start_node(wait_for)
        assert guarded.call("produce", "readings", stdin=lines(200, 100)).returncode == 0
        # No partition is idle, so no record is late, however slowly the other one is written.
        wait_for(lambda: len(guarded.values()) >= 150, "all results", within_s=90.0)
        assert guarded.values() == list(range(0, 300, 2))
        leaks = [line for line in command_lines() if any(one in line for one in SECRETS)]
        assert not leaks
    finally:
        kill(node)
    assert guarded.call("status").returncode == 0
    assert guarded.call("config", "show", "-o", "json").returncode == 0
    assert guarded.call("catalog", "backup", "backup.json").returncode == 0
    assert any((guarded.folder / "events").iterdir())
    (guarded.folder / "printed").write_text("\n".join(guarded.printed), encoding="utf-8")
    project = [guarded.folder / "medusa.yaml", guarded.folder / "secrets" / "kafka"]
    assert set(files_with_secrets(guarded.folder, SECRETS)) == {str(path) for path in project}


def test_topics_are_created_as_declared_or_listed(guarded: Guarded, secured: Secured) -> None:
    """Partitions, replication and retention; with `auto_create: false` none is created."""
    declared = NETWORK.replace("guarded", "declared") + "retention: 3d\nreplication: 1\n"
    document = guarded.folder / "declared.yaml"
    document.write_text(declared + "auto_create: false\n", encoding="utf-8")
    refused = guarded.call("deploy", "-f", "declared.yaml", "--no-wait", "--yes")
    assert refused.returncode == 65
    topics = [TopicName(f"declared-{which}") for which in ("in", "out")]
    for topic in (*topics, "declared-out.boundaries", "local.declared.high.markers"):
        assert f"topic {topic} does not exist" in refused.stderr, refused.stderr
    assert "it needs 2 partitions, replication 1" in refused.stderr
    assert not secured.admin.describe(topics)
    document.write_text(declared, encoding="utf-8")
    made = guarded.call("deploy", "-f", "declared.yaml", "--no-wait", "--yes")
    assert made.returncode == 0, made.stderr
    found = secured.admin.describe(topics)
    assert {topic: facts.partitions for topic, facts in found.items()} == dict.fromkeys(topics, 2)
    for config in secured.admin.topic_configs(topics).values():
        assert config["retention.ms"] == str(3 * 24 * 3_600_000)


def test_errors_are_reported_with_place_reason_and_remedy(guarded: Guarded, tmp_path: Path) -> None:
    """With the documented exit code, and without a stack trace."""
    other = Authority(tmp_path / "other", "another authority")
    mistaken = {"KAFKA_PASSWORD": "mistaken"}
    cases: list[tuple[tuple[str, ...], Mapping[str, str], str, str]] = [
        (("deploy",), mistaken, "Kafka does not accept our credentials", "kafka.password"),
        (("node", "start"), mistaken, "Kafka does not accept our credentials", "kafka.password"),
        (("deploy",), {"KAFKA_TLS_CA": str(other.ca)}, "not believed", "kafka.tls.ca"),
        (("status",), {"ZOOKEEPER_TLS_CA": str(other.ca)}, "not believed", "zookeeper.tls.ca"),
        (
            ("status",),
            {"ZOOKEEPER_PASSWORD": "mistaken"},
            "ZooKeeper does not allow this to us",
            "zookeeper.password",
        ),
        (("status",), {"OF_ZOOKEEPER": ""}, "OF_ZOOKEEPER is not set", "zookeeper.password"),
        (
            ("schema", "list"),
            {"SCHEMA_REGISTRY_PASSWORD": "mistaken"},
            "the registry does not accept our credentials",
            "registry.password",
        ),
        (
            ("schema", "list"),
            {"SCHEMA_REGISTRY_TLS_CA": str(other.ca)},
            "certificate of the registry is not believed",
            "registry.tls.ca",
        ),
        (
            ("tail", "guarded-in", "--no-follow"),
            {"KAFKA_USER": STRANGER, "KAFKA_PASSWORD": STRANGER_PASSWORD},
            "Kafka does not allow this to us",
            "kafka.user",
        ),
    ]
    for words, changes, message, setting in cases:
        done = guarded.call(*words, changes=changes)
        text = done.stderr
        assert done.returncode == 65, (words, changes, text)
        assert message in text, text
        assert setting in text, text
        assert "hint:" in text, text
        assert "Traceback" not in text
        assert not any(one in text for one in (*SECRETS, "mistaken", STRANGER_PASSWORD)), text


def doctor(guarded: Guarded, changes: Mapping[str, str]) -> tuple[int, list[dict[str, str]]]:
    """Exit code and findings of `medusa doctor`."""
    done = guarded.call("doctor", "-o", "json", changes=changes)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)["findings"]


def test_doctor_accepts_a_correct_setup(guarded: Guarded) -> None:
    """Each server's version, each right, and the creation of each topic."""
    code, found = doctor(guarded, {})
    assert code == 0, [one for one in found if one["verdict"] != "good"]
    assert not [one for one in found if one["verdict"] == "wrong"]
    words = {one["what"]: one["message"] for one in found}
    assert "version 4.0 or newer, SASL_SSL as medusa" in words["Kafka, connection"]
    assert words["ZooKeeper, connection"] == "version 3.9.5, encrypted, as medusa"
    assert words["Kafka, access lists"] == f"{TOPIC_RULES} rules about topics"
    # The other user of these servers: the one that the client certificate names.
    assert words["network guarded"].startswith("User:CN=client may write into 5 topics that only")
    assert "guarded-out" in words["network guarded"]


def test_doctor_reports_everything_missing(guarded: Guarded) -> None:
    """Rights, topics and servers, all in one call, with remedies and an exit code."""
    stranger = {"KAFKA_USER": STRANGER, "KAFKA_PASSWORD": STRANGER_PASSWORD}
    code, found = doctor(guarded, stranger)
    wrong = {one["what"]: one for one in found if one["verdict"] == "wrong"}
    (lists,) = (one for one in found if one["what"] == "Kafka, access lists")
    assert (lists["verdict"], lists["message"][:11]) == ("good", "not told to")
    assert code == 65
    assert {"Kafka, transactions", "Kafka, groups", "network guarded"} <= wrong.keys(), wrong
    assert all(one["hint"] for one in wrong.values())
    code, found = doctor(
        guarded, {"KAFKA_PASSWORD": "mistaken", "ZOOKEEPER_CONNECT": "127.0.0.1:1"}
    )
    wrong = {one["what"]: one for one in found if one["verdict"] == "wrong"}
    assert code == 69
    assert wrong.keys() == {"Kafka, connection", "ZooKeeper, connection"}
    document = guarded.folder / "other.yaml"
    document.write_text(NETWORK.replace("guarded", "other") + "auto_create: false\n")
    done = guarded.call("doctor", "-f", "other.yaml", "-o", "json")
    found = json.loads(done.stdout)["findings"]
    of_it = [one for one in found if one["what"] == "network other"]
    missing = [one["message"] for one in of_it if one["verdict"] == "wrong"]
    assert done.returncode == 65
    assert len(missing) == 5
    assert any("topic other-in does not exist, and auto_create is false" in one for one in missing)
    assert not any("mistaken" in text or STRANGER_PASSWORD in text for text in guarded.printed)


def test_a_project_with_references_contains_no_secret(guarded: Guarded) -> None:
    """Output that is derived from references shows the references, not their values."""
    shown = guarded.call("config", "show", "-o", "json")
    found = {one["name"]: one["value"] for one in json.loads(shown.stdout)["settings"]}
    assert found["kafka.password"] == "${file:secrets/kafka}"
    assert found["zookeeper.password"] == "${env:OF_ZOOKEEPER}"
    assert found["registry.password"] == "********"
