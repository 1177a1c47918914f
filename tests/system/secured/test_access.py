"""Authentication and TLS of Medusa's clients, with valid and with wrong settings."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.producer import PlainProducer
from brokers.kafka.servers import KafkaServers, kafka_servers
from brokers.log_reader import LogReader
from brokers.records import NewTopicSpec
from brokers.versioned_store import Create, Set
from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline.cli.project import load_project
from pipeline.errors import RefusedError, UnavailableError
from pipeline.ids import TopicName
from pipeline.settings import Settings
from tests.certificates import Authority
from tests.system.secured.servers import (
    CLIENT_KEY_PASSWORD,
    PASSWORD,
    PLAIN_PASSWORD,
    STRANGER,
    STRANGER_PASSWORD,
    USER,
    Secured,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

WITHIN_S = 10.0
NEVER_S = 300.0
"""Timeout of a call that must not wait: the test's own timeout is much shorter."""


def kafka_settings(secured: Secured, listener: str, mechanism: str = "") -> dict[str, str]:
    """Valid settings of a listener."""
    found = {
        "kafka.bootstrap_servers": secured.address(listener),
        "kafka.security_protocol": listener.upper(),
    }
    if mechanism:
        password = PLAIN_PASSWORD if mechanism == "PLAIN" else PASSWORD
        found |= {"kafka.sasl_mechanism": mechanism, "kafka.user": USER}
        found |= {"kafka.password": password}
    if listener.endswith("ssl"):
        found |= {"kafka.tls.ca": str(secured.authority.ca)}
    if listener == "ssl":
        found |= {
            "kafka.tls.certificate": str(secured.client.certificate),
            "kafka.tls.key": str(secured.client.key),
            "kafka.tls.key_password": CLIENT_KEY_PASSWORD,
        }
    return found


def read(settings: Mapping[str, str]) -> Settings:
    """Settings as read from a project file."""
    return load_project(settings, {}, Path("/")).settings


LISTENERS = [
    ("sasl_ssl", "PLAIN"),
    ("sasl_ssl", "SCRAM-SHA-256"),
    ("sasl_ssl", "SCRAM-SHA-512"),
    ("sasl_plaintext", "PLAIN"),
    ("sasl_plaintext", "SCRAM-SHA-512"),
    ("ssl", ""),
]


@pytest.mark.parametrize(("listener", "mechanism"), LISTENERS)
def test_a_record_is_written_and_read_through_each_kind_of_listener(
    secured: Secured, listener: str, mechanism: str
) -> None:
    """With each mechanism: a topic is created, written and read."""
    brokers = kafka_servers(read(kafka_settings(secured, listener, mechanism)))
    topic = TopicName(f"through-{listener}-{mechanism}")
    KafkaAdmin(brokers, WITHIN_S).create_topics((NewTopicSpec(topic, 1, 1),))
    producer = PlainProducer(brokers, WITHIN_S)
    producer.send(topic, None, b"hello")
    producer.flush(WITHIN_S)
    producer.close()
    newest = LogReader(RemoteKafka(brokers), WITHIN_S).newest(topic, 1)
    assert [r.value for r in newest] == [b"hello"]


def refusal(brokers: KafkaServers) -> RefusedError:
    """The brokers' refusal, raised at once and not after the driver's retries."""
    with pytest.raises(RefusedError) as caught:
        KafkaAdmin(brokers, NEVER_S).cluster_id()
    return caught.value


@pytest.mark.parametrize(("listener", "mechanism"), LISTENERS[:-1])
def test_a_wrong_password_is_reported_at_once(
    secured: Secured, listener: str, mechanism: str
) -> None:
    """With place, reason and remedy, without the password."""
    settings = kafka_settings(secured, listener, mechanism) | {"kafka.password": "mistaken"}
    error = refusal(kafka_servers(read(settings)))
    assert "does not accept our credentials" in error.message
    assert secured.address(listener) in error.place
    assert "kafka.password" in error.hint
    assert "mistaken" not in str(error)


@pytest.mark.parametrize("listener", ["ssl", "sasl_ssl"])
def test_broker_certificates_of_another_authority_are_rejected(
    secured: Secured, listener: str, tmp_path: Path
) -> None:
    """The error is raised at once, and no credentials are sent."""
    other = Authority(tmp_path / "other", "another authority")
    mechanism = "PLAIN" if listener == "sasl_ssl" else ""
    settings = kafka_settings(secured, listener, mechanism) | {"kafka.tls.ca": str(other.ca)}
    error = refusal(kafka_servers(read(settings)))
    assert "certificate of the server is not believed" in error.message
    assert "kafka.tls.ca" in error.hint


def test_a_missing_client_certificate_is_reported(secured: Secured) -> None:
    """The broker requires one, so the connection fails."""
    settings = kafka_settings(secured, "ssl")
    without_certificate = {
        k: v for k, v in settings.items() if "certificate" not in k and "key" not in k
    }
    assert "kafka.tls.certificate" in refusal(kafka_servers(read(without_certificate))).hint


def test_tls_to_a_plaintext_listener_is_reported_at_once(secured: Secured) -> None:
    """The TLS handshake fails."""
    settings = kafka_settings(secured, "sasl_ssl", "PLAIN")
    settings["kafka.bootstrap_servers"] = secured.address("sasl_plaintext")
    with pytest.raises((RefusedError, UnavailableError)) as caught:
        KafkaAdmin(kafka_servers(read(settings)), NEVER_S).cluster_id()
    assert "does it listen for TLS there" in caught.value.hint


def test_a_missing_right_is_reported_with_the_topic(secured: Secured) -> None:
    """For a user without rights: the operation, the topic, and who can grant the right."""
    topic = TopicName("not-for-strangers")
    secured.admin.create_topics((NewTopicSpec(topic, 1, 1),))
    settings = kafka_settings(secured, "sasl_ssl", "SCRAM-SHA-512")
    settings |= {"kafka.user": STRANGER, "kafka.password": STRANGER_PASSWORD}
    brokers = kafka_servers(read(settings))
    with pytest.raises(RefusedError) as caught:
        KafkaAdmin(brokers, WITHIN_S).describe((topic,))
    assert "does not allow this to us" in caught.value.message
    assert topic in caught.value.place
    assert "kafka.user" in caught.value.hint


def zookeeper_settings(secured: Secured, chroot: str) -> dict[str, str]:
    """Valid settings of ZooKeeper."""
    return {
        "zookeeper.connect": secured.address("secure") + chroot,
        "zookeeper.user": USER,
        "zookeeper.password": PASSWORD,
        "zookeeper.tls.ca": str(secured.authority.ca),
        "zookeeper.tls.certificate": str(secured.client.certificate),
        "zookeeper.tls.key": str(secured.client.key),
        "zookeeper.tls.key_password": CLIENT_KEY_PASSWORD,
    }


def test_znodes_are_accessible_only_with_the_login_that_created_them(secured: Secured) -> None:
    """They cannot be read or changed with another password or without one."""
    settings = zookeeper_settings(secured, "/open")
    mistaken = settings | {"zookeeper.password": "mistaken"}
    anonymous = settings | {"zookeeper.user": "", "zookeeper.password": ""}
    # The parent path was created by a client without a login.
    ZooKeeperStore.connect(zookeeper_servers(read(anonymous)), WITHIN_S).close()
    store = ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S)
    store.apply((Create("/one", b"1"), Create("/two", b"2", ephemeral=True)))
    for changed in (mistaken, anonymous):
        other = ZooKeeperStore.connect(zookeeper_servers(read(changed)), WITHIN_S)
        for path in ("/one", "/two"):
            with pytest.raises(RefusedError) as caught:
                other.get(path)
            assert f"/open{path}" in caught.value.place
            assert "zookeeper.password" in caught.value.hint
        with pytest.raises(RefusedError):
            other.apply((Set("/one", b"3", 0),))
        other.close()
    again = ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S)
    found = again.get("/one")
    assert found is not None
    assert found.value == b"1"
    for opened in (again, store):
        opened.close()


def test_a_chroot_of_another_login_is_refused(secured: Secured) -> None:
    """Other clients are refused when they connect."""
    settings = zookeeper_settings(secured, "/closed")
    ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S).close()
    mistaken = zookeeper_servers(read(settings | {"zookeeper.password": "mistaken"}))
    with pytest.raises(RefusedError) as caught:
        ZooKeeperStore.connect(mistaken, WITHIN_S)
    assert "/closed" in caught.value.place


def test_a_zookeeper_certificate_of_another_authority_is_rejected(
    secured: Secured, tmp_path: Path
) -> None:
    """The error is raised at once, and the password is not sent."""
    other = Authority(tmp_path / "other", "another authority")
    settings = zookeeper_settings(secured, "/x") | {"zookeeper.tls.ca": str(other.ca)}
    with pytest.raises(RefusedError) as caught:
        ZooKeeperStore.connect(zookeeper_servers(read(settings)), NEVER_S)
    assert "certificate of the server is not believed" in caught.value.message
    assert "zookeeper.tls.ca" in caught.value.hint


def test_tls_to_a_plaintext_zookeeper_port_is_reported_at_once(secured: Secured) -> None:
    """The TLS handshake fails."""
    settings = zookeeper_settings(secured, "/x")
    settings["zookeeper.connect"] = secured.address("plain")
    with pytest.raises((RefusedError, UnavailableError)) as caught:
        ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S)
    assert "does it listen for TLS there" in caught.value.hint
