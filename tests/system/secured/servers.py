"""Secured Kafka and ZooKeeper: logins, certificates and access control lists."""

import base64
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from brokers.access import PemFile, Tls
from brokers.embedded.control import take_lock
from brokers.embedded.jars import kafka_classpath, pyspark_jars
from brokers.embedded.java import find_java
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.servers import (
    LOOPBACK,
    JavaServer,
    Place,
    start_server,
    wait_until_ready,
    write_file,
)
from brokers.kafka.admin import KafkaAdmin
from brokers.ports import free_port
from brokers.zookeeper import ZooKeeperServers, ZooKeeperStore
from pipeline.clock import Deadline
from pipeline.names import READER_GROUP
from pipeline.system_clock import SystemClock
from tests.certificates import Authority, Certificate

USER = "medusa"
PASSWORD = 'pa"ss\\wo;r=d é'
"""Contains characters that break under wrong quoting."""
PLAIN_PASSWORD = "plain-password-of-medusa"
STRANGER = "stranger"
STRANGER_PASSWORD = "password-of-stranger"
CLIENT_KEY_PASSWORD = "password-of-the-client-key"

RIGHTS: Mapping[ResourceType, tuple[str, ...]] = {
    ResourceType.TOPIC: ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE", "DELETE"),
    ResourceType.GROUP: ("READ", "DESCRIBE", "DELETE"),
    ResourceType.TRANSACTIONAL_ID: ("WRITE", "DESCRIBE"),
    ResourceType.BROKER: ("DESCRIBE",),
}
NAMED = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
PARTICIPANT = "local"
TOPIC_PREFIXES = ("guarded-", "declared-", "other-", "through-", "not-for-strangers")
"""Of the topics that the tests' networks, and the tests themselves, name."""
TOPIC_RULES = len(RIGHTS[ResourceType.TOPIC]) * (len(TOPIC_PREFIXES) + 2)
Rule = tuple[ResourceType, ResourcePatternType, str]

_KAFKA = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=INSIDE://{host}:{inside},CONTROLLER://{host}:{controller},\
SASL_SSL://{host}:{sasl_ssl},SASL_PLAINTEXT://{host}:{sasl_plaintext},SSL://{host}:{ssl}
listener.security.protocol.map=INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,\
SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL
controller.listener.names=CONTROLLER
inter.broker.listener.name=INSIDE
log.dirs=data
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=16777216
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
# Clients of the inner listeners without authentication: the broker itself, and the test.
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
listener.name.ssl.ssl.client.auth=required
"""
_LOGIN_MODULES = """\
listener.name.{listener}.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}" user_{stranger}="{stranger_password}";
listener.name.{listener}.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.{listener}.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
_ZOOKEEPER = """\
dataDir=data
clientPortAddress={host}
secureClientPort={secure}
secureClientPortAddress={host}
clientPort={plain}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={keystore}
ssl.keyStore.type=PEM
ssl.trustStore.location={truststore}
ssl.trustStore.type=PEM
ssl.clientAuth=want
admin.enableServer=false
tickTime=200
maxSessionTimeout=60000
"""


@dataclass(frozen=True)
class Secured:
    """Running servers: loopback ports and credentials."""

    ports: Mapping[str, int]
    authority: Authority
    client: Certificate
    kafka: Child
    zookeeper: Child

    def address(self, listener: str) -> str:
        """Host and port of a listener."""
        return f"{LOOPBACK}:{self.ports[listener]}"

    @property
    def admin(self) -> KafkaAdmin:
        """An administrative client with the superuser's credentials."""
        return KafkaAdmin(self.address("inside"), 20.0)


@contextmanager
def secured_servers(folder: Path, cache: Path) -> Iterator[Secured]:
    """Start both servers and create users; stops them at the end."""
    clock = SystemClock()
    listeners = ("inside", "controller", "sasl_ssl", "sasl_plaintext", "ssl", "plain", "secure")
    ports = {name: free_port() for name in listeners}
    authority = Authority(folder / "authority", "the authority of the test")
    of_servers = authority.sign("server")
    of_client = authority.sign("client", CLIENT_KEY_PASSWORD)
    with ExitStack() as undo:
        lock = take_lock(folder, clock)
        undo.callback(os.close, lock)
        place = Place(folder, find_java(os.environ), lock)
        files = {"keystore": str(of_servers.both), "truststore": str(authority.ca)}
        zookeeper = _start_zookeeper(place, ports, files)
        undo.callback(zookeeper.stop)
        kafka = _start_kafka(place, ports, files, cache)
        undo.callback(kafka.stop)
        tls = Tls(PemFile(authority.ca, authority.ca.read_text()))
        secure = ZooKeeperServers(f"{LOOPBACK}:{ports['secure']}", tls=tls)
        wait_until_ready(
            zookeeper,
            ports["secure"],
            lambda within_s: ZooKeeperStore.connect(secure, within_s).close(),
            clock,
        )
        inside = f"{LOOPBACK}:{ports['inside']}"
        wait_until_ready(
            kafka,
            ports["inside"],
            lambda within_s: KafkaAdmin(inside, within_s).cluster_id(),
            clock,
        )
        _make_users(inside)
        yield Secured(ports, authority, of_client, kafka, zookeeper)


def _start_zookeeper(place: Place, ports: Mapping[str, int], files: Mapping[str, str]) -> Child:
    text = _ZOOKEEPER.format(host=LOOPBACK, **ports, **files)
    write_file(place.data / "zookeeper" / "zoo.cfg", text)
    return start_server(
        place,
        JavaServer(
            name="zookeeper",
            main=("org.apache.zookeeper.server.ZooKeeperServerMain", "zoo.cfg"),
            heap_mb=128,
            class_path=f"{pyspark_jars()}/*",
            options=("-Dzookeeper.preAllocSize=1024", "-XX:+UseSerialGC"),
        ),
    )


def _start_kafka(
    place: Place, ports: Mapping[str, int], files: Mapping[str, str], cache: Path
) -> Child:
    folder, class_path = place.data / "kafka", kafka_classpath(cache)
    modules = "".join(
        _LOGIN_MODULES.format(
            listener=listener,
            user=USER,
            password=PLAIN_PASSWORD,
            stranger=STRANGER,
            stranger_password=STRANGER_PASSWORD,
        )
        for listener in ("sasl_ssl", "sasl_plaintext")
    )
    text = _KAFKA.format(host=LOOPBACK, **ports, **files)
    write_file(folder / "server.properties", text + modules)
    cluster = base64.urlsafe_b64encode(uuid.UUID(int=1).bytes).decode().rstrip("=")
    command = (
        *(str(place.java.executable), "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", class_path),
        *("kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties"),
    )
    tool = start_child(ChildSpec("storage tool", command, place.logs / "format.out", folder))
    deadline = Deadline.after(SystemClock(), 60.0, "formatting Kafka's folder")
    try:
        while tool.running:
            deadline.check()
            time.sleep(0.02)
    finally:
        tool.stop()
    assert tool.exit_code == 0, tool.last_lines()
    return start_server(
        place,
        JavaServer(
            name="kafka",
            main=("kafka.Kafka", "server.properties"),
            heap_mb=512,
            class_path=class_path,
        ),
    )


def _rules() -> tuple[Rule, ...]:
    """Prefixes: of the participant, and of the topics that the tests' networks name."""
    return (
        *((resource, ResourcePatternType.PREFIXED, f"{PARTICIPANT}.") for resource in NAMED),
        *((ResourceType.TOPIC, ResourcePatternType.PREFIXED, name) for name in TOPIC_PREFIXES),
        (ResourceType.GROUP, ResourcePatternType.LITERAL, READER_GROUP),
        (ResourceType.BROKER, ResourcePatternType.LITERAL, "kafka-cluster"),
    )


def _rules_for_all() -> tuple[Rule, ...]:
    return tuple((resource, ResourcePatternType.LITERAL, "*") for resource in NAMED)


def _make_users(inside: str) -> None:
    """Create SCRAM users, and give one of them the documented rights, by prefix.

    The user of the client certificate has them on all resources.
    """
    client = AdminClient({"bootstrap.servers": inside})
    for user, password in ((USER, PASSWORD), (STRANGER, STRANGER_PASSWORD)):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            made = UserScramCredentialUpsertion(
                user, ScramCredentialInfo(mechanism, 4096), password.encode()
            )
            for done in client.alter_user_scram_credentials([made]).values():
                done.result(20)
    bindings = [
        AclBinding(
            resource,
            name,
            pattern,
            f"User:{who}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for who, rules in ((USER, _rules()), ("CN=client", _rules_for_all()))
        for resource, pattern, name in rules
        for operation in RIGHTS[resource]
    ]
    for done in client.create_acls(bindings).values():
        done.result(20)
