from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.access import Identity, Login, PemFile, Tls
from brokers.kafka.config import client_config
from brokers.kafka.servers import (
    KafkaServers,
    Sasl,
    java_options,
    kafka_servers,
    librdkafka_options,
)
from pipeline.errors import InputError
from pipeline.secrets import Secret
from pipeline.settings import combine
from tests.certificates import Authority

CA = PemFile(Path("ca.pem"), "-----BEGIN CERTIFICATE-----")
IDENTITY = Identity(
    PemFile(Path("c.pem"), "CERTIFICATE"), PemFile(Path("k.pem"), "KEY"), Secret("of the key")
)
SASL = Sasl("SCRAM-SHA-512", Login("me", Secret("pass")))


@pytest.mark.parametrize(
    ("servers", "protocol"),
    [
        (KafkaServers("a:1"), "PLAINTEXT"),
        (KafkaServers("a:1", tls=Tls()), "SSL"),
        (KafkaServers("a:1", SASL), "SASL_PLAINTEXT"),
        (KafkaServers("a:1", SASL, Tls()), "SASL_SSL"),
    ],
)
def test_both_clients_use_the_same_protocol(servers: KafkaServers, protocol: str) -> None:
    """The settings of the brokers determine it, for librdkafka and for Java."""
    assert librdkafka_options(servers)["security.protocol"] == protocol
    assert java_options(servers)["security.protocol"] == protocol


@pytest.mark.parametrize(
    ("servers", "principal"),
    [
        (KafkaServers("a:1"), "User:ANONYMOUS"),
        (KafkaServers("a:1", tls=Tls(CA)), "User:ANONYMOUS"),
        (KafkaServers("a:1", tls=Tls(CA, IDENTITY)), None),
        (KafkaServers("a:1", SASL), "User:me"),
        (KafkaServers("a:1", SASL, Tls(CA, IDENTITY)), "User:me"),
    ],
)
def test_the_identity_at_the_brokers(servers: KafkaServers, principal: str | None) -> None:
    """That of the login; the mapping of a certificate is in the brokers' own settings."""
    assert servers.principal == principal


def test_options_of_librdkafka() -> None:
    """By its own names, with the contents of files."""
    assert librdkafka_options(KafkaServers("a:1", SASL, Tls(CA, IDENTITY))) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "pass",
        "ssl.ca.pem": CA.text,
        "ssl.certificate.pem": "CERTIFICATE",
        "ssl.key.pem": "KEY",
        "ssl.key.password": "of the key",
    }


def test_options_of_java() -> None:
    """By the names of Java clients, with the contents of files: executors have no such files."""
    assert java_options(KafkaServers("a:1", SASL, Tls(CA, IDENTITY))) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="me" password="pass";'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CA.text,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERTIFICATE",
        "ssl.keystore.key": "KEY",
        "ssl.key.password": "of the key",
    }


def unquoted(text: str) -> tuple[str, str]:
    """Parse a quoted text as Java's tokenizer does; returns it and the rest."""
    assert text[0] == '"'
    found, at, escapes = "", 1, {"n": "\n", "r": "\r"}
    while text[at] != '"':
        assert text[at] not in "\n\r", "a line end ends a text for the tokenizer"
        if text[at] == "\\":
            at += 1
            found += escapes.get(text[at], text[at])
        else:
            found += text[at]
        at += 1
    return found, text[at + 1 :]


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_name_and_password_is_quoted_for_java(user: str, password: str) -> None:
    """Quotes, backslashes, semicolons and line ends are preserved."""
    servers = KafkaServers("a:1", Sasl("PLAIN", Login(user, Secret(password))))
    _, _, rest = java_options(servers)["sasl.jaas.config"].partition(" required username=")
    found, rest = unquoted(rest)
    assert found == user
    found, rest = unquoted(rest.removeprefix(" password="))
    assert (found, rest) == (password, ";")


def test_every_client_has_the_authentication_options() -> None:
    """They are in the base configuration of each client."""
    config = client_config(KafkaServers("a:1", SASL), group_id="g")
    assert config["bootstrap.servers"] == "a:1"
    assert config["sasl.password"] == "pass"
    assert client_config("a:1")["security.protocol"] == "PLAINTEXT"


def test_servers_are_printed_as_their_address() -> None:
    """Only the address may be in messages."""
    servers = KafkaServers("a:1", SASL, Tls(CA, IDENTITY))
    assert str(servers) == "a:1"
    assert not {"pass", "KEY", "of the key"} & set(repr(servers).replace("'", " ").split())


def of_settings(values: Mapping[str, str]) -> KafkaServers:
    """The servers of settings."""
    return kafka_servers(combine((("test", values),)))


LOGIN = {"kafka.sasl_mechanism": "PLAIN", "kafka.user": "me", "kafka.password": "pass"}


def test_settings_of_open_brokers() -> None:
    """Without any setting there is no login and no encryption."""
    assert of_settings({"kafka.bootstrap_servers": "b:2"}) == KafkaServers("b:2")


def test_settings_of_secured_brokers(tmp_path: Path) -> None:
    """All of them together."""
    authority = Authority(tmp_path / "authority", "ours")
    client = authority.sign("client", "of the key")
    found = of_settings(
        {
            **LOGIN,
            "kafka.security_protocol": "SASL_SSL",
            "kafka.tls.ca": str(authority.ca),
            "kafka.tls.certificate": str(client.certificate),
            "kafka.tls.key": str(client.key),
            "kafka.tls.key_password": "of the key",
        }
    )
    assert found.protocol == "SASL_SSL"
    assert found.sasl == Sasl("PLAIN", Login("me", Secret("pass")))
    assert found.tls is not None
    assert found.tls.identity is not None


@pytest.mark.parametrize("missing", sorted(LOGIN))
def test_an_incomplete_login_is_refused(missing: str) -> None:
    """With the missing setting and the one that needs it."""
    values = {name: value for name, value in LOGIN.items() if name != missing}
    with pytest.raises(InputError, match=f"{missing} is missing"):
        of_settings({**values, "kafka.security_protocol": "SASL_SSL"})


@pytest.mark.parametrize(
    "unused", [{"kafka.user": "me"}, {"kafka.password": "pass"}, {"kafka.tls.ca": "ca.pem"}]
)
def test_unused_settings_are_refused(unused: Mapping[str, str]) -> None:
    """A password without encryption would suggest a protection that does not exist."""
    with pytest.raises(InputError, match="does not use it") as caught:
        of_settings(unused)
    assert "kafka.security_protocol" in caught.value.hint
