"""Our clients at servers that ask who comes, and at the same servers with something wrong."""

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
"""A limit of a call that must not wait: the test's own deadline is over long before."""


def kafka_settings(secured: Secured, listener: str, mechanism: str = "") -> dict[str, str]:
    """Settings with which a listener lets us in."""
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
    """Settings as a project file gives them."""
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
def test_a_record_goes_through_each_kind_of_listener(
    secured: Secured, listener: str, mechanism: str
) -> None:
    """With each mechanism: a topic is made, written and read."""
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
    """With what the brokers refuse us; at once, not when a driver has tried for long."""
    with pytest.raises(RefusedError) as caught:
        KafkaAdmin(brokers, NEVER_S).cluster_id()
    return caught.value


@pytest.mark.parametrize(("listener", "mechanism"), LISTENERS[:-1])
def test_a_wrong_password_is_told_at_once(secured: Secured, listener: str, mechanism: str) -> None:
    """With where, what and what to do; the password is not repeated."""
    settings = kafka_settings(secured, listener, mechanism) | {"kafka.password": "mistaken"}
    error = refusal(kafka_servers(read(settings)))
    assert "does not accept our credentials" in error.message
    assert secured.address(listener) in error.place
    assert "kafka.password" in error.hint
    assert "mistaken" not in str(error)


@pytest.mark.parametrize("listener", ["ssl", "sasl_ssl"])
def test_brokers_of_another_authority_are_not_believed(
    secured: Secured, listener: str, tmp_path: Path
) -> None:
    """Whoever answers is not who we want to talk to: told at once, nothing is sent."""
    other = Authority(tmp_path / "other", "another authority")
    mechanism = "PLAIN" if listener == "sasl_ssl" else ""
    settings = kafka_settings(secured, listener, mechanism) | {"kafka.tls.ca": str(other.ca)}
    error = refusal(kafka_servers(read(settings)))
    assert "certificate of the server is not believed" in error.message
    assert "kafka.tls.ca" in error.hint


def test_a_broker_that_wants_a_certificate_says_so(secured: Secured) -> None:
    """Without ours there is no connection."""
    settings = kafka_settings(secured, "ssl")
    wanted = {k: v for k, v in settings.items() if "certificate" not in k and "key" not in k}
    assert "kafka.tls.certificate" in refusal(kafka_servers(read(wanted))).hint


def test_tls_at_a_listener_without_it_is_told_at_once(secured: Secured) -> None:
    """The two do not understand each other."""
    settings = kafka_settings(secured, "sasl_ssl", "PLAIN")
    settings["kafka.bootstrap_servers"] = secured.address("sasl_plaintext")
    with pytest.raises((RefusedError, UnavailableError)) as caught:
        KafkaAdmin(kafka_servers(read(settings)), NEVER_S).cluster_id()
    assert "does it listen for TLS there" in caught.value.hint


def test_a_missing_right_is_told_with_the_topic(secured: Secured) -> None:
    """A user who may do nothing: what is not allowed, where, and who can help."""
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
    """Settings with which ZooKeeper lets us in."""
    return {
        "zookeeper.connect": secured.address("secure") + chroot,
        "zookeeper.user": USER,
        "zookeeper.password": PASSWORD,
        "zookeeper.tls.ca": str(secured.authority.ca),
        "zookeeper.tls.certificate": str(secured.client.certificate),
        "zookeeper.tls.key": str(secured.client.key),
        "zookeeper.tls.key_password": CLIENT_KEY_PASSWORD,
    }


def test_what_we_make_in_zookeeper_is_ours(secured: Secured) -> None:
    """Nobody else reads or changes it, with another password or without any."""
    settings = zookeeper_settings(secured, "/open")
    mistaken = settings | {"zookeeper.password": "mistaken"}
    nobody = settings | {"zookeeper.user": "", "zookeeper.password": ""}
    # The path where all of it lies was made by somebody who had no login.
    ZooKeeperStore.connect(zookeeper_servers(read(nobody)), WITHIN_S).close()
    store = ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S)
    store.apply((Create("/one", b"1"), Create("/two", b"2", ephemeral=True)))
    for changed in (mistaken, nobody):
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


def test_a_path_that_we_made_is_closed_to_others(secured: Secured) -> None:
    """They hear of it when they connect."""
    settings = zookeeper_settings(secured, "/closed")
    ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S).close()
    mistaken = zookeeper_servers(read(settings | {"zookeeper.password": "mistaken"}))
    with pytest.raises(RefusedError) as caught:
        ZooKeeperStore.connect(mistaken, WITHIN_S)
    assert "/closed" in caught.value.place


def test_a_zookeeper_of_another_authority_is_not_believed(secured: Secured, tmp_path: Path) -> None:
    """Told at once, and the password is not sent."""
    other = Authority(tmp_path / "other", "another authority")
    settings = zookeeper_settings(secured, "/x") | {"zookeeper.tls.ca": str(other.ca)}
    with pytest.raises(RefusedError) as caught:
        ZooKeeperStore.connect(zookeeper_servers(read(settings)), NEVER_S)
    assert "certificate of the server is not believed" in caught.value.message
    assert "zookeeper.tls.ca" in caught.value.hint


def test_tls_at_a_zookeeper_port_without_it_is_told_at_once(secured: Secured) -> None:
    """The two do not understand each other."""
    settings = zookeeper_settings(secured, "/x")
    settings["zookeeper.connect"] = secured.address("plain")
    with pytest.raises((RefusedError, UnavailableError)) as caught:
        ZooKeeperStore.connect(zookeeper_servers(read(settings)), WITHIN_S)
    assert "does it listen for TLS there" in caught.value.hint
