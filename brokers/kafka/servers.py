"""Addresses and authentication of Kafka brokers; conversion to options of librdkafka and Java.

Both get the content of files, not their paths: a Spark task may run where these files do not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from brokers.access import Login, Tls, TlsFiles, read_login
from pipeline.errors import InputError
from pipeline.settings import Settings

_LOGIN_MODULES: Final[Mapping[str, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Sasl:
    """SASL mechanism and credentials."""

    mechanism: str
    login: Login


@dataclass(frozen=True, slots=True)
class KafkaServers:
    """Addresses of brokers, with SASL and TLS settings.

    Args:
        bootstrap: `host:port`, or several of them with commas between.
        sasl: None: no SASL authentication.
        tls: None: the connection is not encrypted.
    """

    bootstrap: str
    sasl: Sasl | None = None
    tls: Tls | None = None

    def __str__(self) -> str:
        return self.bootstrap

    @property
    def protocol(self) -> str:
        """The security protocol, by Kafka's name."""
        encrypted = "PLAINTEXT" if self.tls is None else "SSL"
        if self.sasl is None:
            return encrypted
        return f"SASL_{encrypted}"

    @property
    def principal(self) -> str | None:
        """Our principal; None: the brokers derive it from our certificate, by rules of theirs.

        The principal of an unauthenticated client is `User:ANONYMOUS`.
        """
        if self.sasl is not None:
            return f"User:{self.sasl.login.user}"
        certified = self.tls is not None and self.tls.identity is not None
        return None if certified else "User:ANONYMOUS"


Brokers: TypeAlias = KafkaServers | str
"""The brokers that clients connect to; a plain text: without authentication and encryption."""


def servers(brokers: Brokers) -> KafkaServers:
    """The brokers with their settings; none if only addresses are given."""
    return KafkaServers(brokers) if isinstance(brokers, str) else brokers


def kafka_servers(settings: Settings) -> KafkaServers:
    """The brokers of an installation; secrets are resolved, files are read.

    Raises:
        InputError: a setting is missing that the protocol needs, one is set that it does not use, a
            secret cannot be resolved, or a file has the wrong content.
    """
    protocol = settings.kafka_security_protocol
    files = TlsFiles(
        "kafka",
        settings.kafka_tls_ca,
        settings.kafka_tls_certificate,
        settings.kafka_tls_key,
        settings.kafka_tls_key_password,
    )
    encrypted = protocol.endswith("SSL")
    if files.any and not encrypted:
        raise _unused("kafka.tls", protocol, "SSL or SASL_SSL")
    return KafkaServers(
        settings.kafka_bootstrap_servers,
        _sasl(settings),
        files.read() if encrypted else None,
    )


def librdkafka_options(brokers: KafkaServers) -> dict[str, str]:
    """Authentication and encryption as options of librdkafka."""
    options = {"security.protocol": brokers.protocol}
    sasl, tls = brokers.sasl, brokers.tls
    if sasl is not None:
        options |= {
            "sasl.mechanism": sasl.mechanism,
            "sasl.username": sasl.login.user,
            "sasl.password": sasl.login.password.reveal(),
        }
    if tls is not None and tls.ca is not None:
        options["ssl.ca.pem"] = tls.ca.text
    if tls is not None and tls.identity is not None:
        options |= {
            "ssl.certificate.pem": tls.identity.certificate.text,
            "ssl.key.pem": tls.identity.key.text,
        }
        password = tls.identity.key_password.reveal()
        options |= {"ssl.key.password": password} if password else {}
    return options


def java_options(brokers: KafkaServers) -> dict[str, str]:
    """Authentication and encryption as options of Kafka's Java clients."""
    options = {"security.protocol": brokers.protocol}
    sasl, tls = brokers.sasl, brokers.tls
    if sasl is not None:
        user, password = sasl.login.user, sasl.login.password.reveal()
        options |= {
            "sasl.mechanism": sasl.mechanism,
            "sasl.jaas.config": (
                f"{_LOGIN_MODULES[sasl.mechanism]} required "
                f"username={_quoted(user)} password={_quoted(password)};"
            ),
        }
    if tls is not None and tls.ca is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": tls.ca.text}
    if tls is not None and tls.identity is not None:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": tls.identity.certificate.text,
            "ssl.keystore.key": tls.identity.key.text,
        }
        password = tls.identity.key_password.reveal()
        options |= {"ssl.key.password": password} if password else {}
    return options


def _sasl(settings: Settings) -> Sasl | None:
    protocol, mechanism = settings.kafka_security_protocol, settings.kafka_sasl_mechanism
    uses_sasl = protocol.startswith("SASL_")
    for name, value in (
        ("kafka.sasl_mechanism", mechanism),
        ("kafka.user", settings.kafka_user),
        ("kafka.password", settings.kafka_password),
    ):
        if value and not uses_sasl:
            raise _unused(name, protocol, "SASL_SSL or SASL_PLAINTEXT")
        if uses_sasl and not value:
            raise InputError(
                f"{name} is missing, which kafka.security_protocol {protocol} needs",
                place="settings",
                hint="ask an administrator of the brokers for it.",
            )
    login = read_login("kafka", settings.kafka_user, settings.kafka_password)
    return None if login is None else Sasl(mechanism, login)


def _unused(name: str, protocol: str, needed: str) -> InputError:
    return InputError(
        f"{name} is set, but kafka.security_protocol {protocol} does not use it",
        place="settings",
        hint=f"set kafka.security_protocol to {needed}, or leave {name} out.",
    )


def _quoted(text: str) -> str:
    """A string literal of a JAAS configuration, escaped as in Java."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + escaped.replace("\r", "\\r") + '"'
