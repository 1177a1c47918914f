"""Settings: flag, environment, project file, user file, default, in that order.

The pure part: what settings there are and how layers combine. Reading the environment and the
files is done by `pipeline/cli/project.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from pipeline import secrets
from pipeline.errors import Problem
from pipeline.labels import LABEL_WORDS, LABELS_PATTERN, parse_labels
from pipeline.names import NAME_PATTERN
from pipeline.secrets import SecretSetting


@dataclass(frozen=True, slots=True)
class Form:
    """What a value looks like: a pattern, and the same in words."""

    pattern: str
    words: str


_NAME = Form(NAME_PATTERN, "lower case letters, digits and _, a letter first")
_NODE = Form(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "letters, digits, - . and _")
_LABELS = Form(LABELS_PATTERN, f"labels with commas between, each {LABEL_WORDS}")
_CAPACITY = Form(r"0|[1-9][0-9]{0,5}", "a whole number from 0 to 999999")
_MOST_FRAGMENTS = Form(r"([1-9][0-9]{0,3})?", "a whole number from 1 to 9999, or nothing")
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_ADDRESS = rf"{_HOST}(:{_PORT})?"
_ADDRESSES = rf"{_ADDRESS}(\s*,\s*{_ADDRESS})*"
_MASTER = Form(
    rf"local(\[(\*|[1-9][0-9]*)(,[1-9][0-9]*)?\])?|spark://{_HOST}:{_PORT}(,{_HOST}:{_PORT})*",
    "local[2], local[*] or spark://HOST:PORT, with more of HOST:PORT behind commas",
)
_CORES = Form(r"[1-9][0-9]{0,3}", "a whole number from 1 to 9999")
_OWN_HOST = Form(rf"({_HOST})?", "a host name or an address, without a port")
_BROKERS = Form(
    rf"([A-Za-z_]+://)?{_ADDRESS}(\s*,\s*([A-Za-z_]+://)?{_ADDRESS})*",
    "HOST:PORT, or several of them with commas between",
)
_ZOOKEEPER = Form(
    rf"{_ADDRESSES}(/[^\s,]*)?",
    "HOST:PORT, or several of them with commas between, and perhaps a path: HOST:PORT/medusa",
)
_SESSION = Form(r"([1-9]|[1-5][0-9]|60)s", "whole seconds, from 1s to 60s")
_SUSPECT_AFTER = Form(
    r"([5-9][0-9]{2}|[1-9][0-9]{3}|[1-5][0-9]{4}|60000)ms|([1-9]|[1-5][0-9]|60)s",
    "whole milliseconds or seconds, from 500ms to 60s",
)
_URL = Form(rf"https?://([^\s/@]+@)?{_ADDRESS}(/\S*)?", "http:// or https:// and HOST:PORT")
_PASSWORD = re.compile(r"//[^/\s]*@")
_SECURITY = Form(
    "PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"
)
_MECHANISM = Form("|PLAIN|SCRAM-SHA-256|SCRAM-SHA-512", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
_ZOOKEEPER_USER = Form(r"[^:]*", "a name without a colon")
_SECRET = Form(secrets.FORM, "${env:NAME}, ${file:PATH} or the secret itself")
_MEMORY = Form(r"[1-9][0-9]*[kKmMgGtT]", "a whole number and k, m, g or t, such as 1g or 1536m")


_STORE = Form(
    r"(?!.*://).*|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s/]+)*/?",
    "a folder that the nodes mount, or s3://BUCKET/PREFIX",
)
_ENDPOINT = Form(rf"(https?://{_ADDRESS})?", "http:// or https:// and HOST:PORT")
_FOLDER = Form(r"(?!.*://).*", "a folder of this machine, or one that it has mounted")

_ANYTHING = Form(r"(?s).*", "anything")


class Kind(Enum):
    """What a value is: a text; a path, relative to the project file; or a secret."""

    TEXT = "text"
    PATH = "path"
    SECRET = "secret"  # noqa: S105 - the kind, not one of them


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: dotted name, variable in the environment, default, meaning, form of a value."""

    name: str
    environment: str
    default: str
    meaning: str
    form: Form = _ANYTHING
    kind: Kind = Kind.TEXT
    is_access: bool = False
    """Whether it is about how to get in at a server."""

    @property
    def field(self) -> str:
        """Its attribute in `Settings`."""
        return self.name.replace(".", "_")


def _access(server: str, variables: str, user: Form = _ANYTHING) -> tuple[Setting, ...]:
    """How to get in at a server: who we are, and with which files a connection is encrypted."""

    def setting(name: str, meaning: str, kind: Kind = Kind.TEXT, form: Form = _ANYTHING) -> Setting:
        variable = f"{variables}_{name.replace('.', '_').upper()}"
        return Setting(f"{server}.{name}", variable, "", meaning, form, kind, is_access=True)

    return (
        setting("user", f"who we are to {server}; empty: nobody", form=user),
        setting("password", f"password of {server}.user", Kind.SECRET, _SECRET),
        setting(
            "tls.ca",
            f"PEM file: authorities that {server} may have its certificate from",
            Kind.PATH,
        ),
        setting(
            "tls.certificate", f"PEM file: our certificate, where {server} wants one", Kind.PATH
        ),
        setting("tls.key", f"PEM file: the private key of {server}.tls.certificate", Kind.PATH),
        setting("tls.key_password", f"password of {server}.tls.key", Kind.SECRET, _SECRET),
    )


SETTINGS: tuple[Setting, ...] = (
    Setting("participant", "MEDUSA_PARTICIPANT", "local", "the owner of networks and nodes", _NAME),
    Setting("node", "MEDUSA_NODE", "node1", "the name of the node this machine runs", _NODE),
    Setting(
        "labels",
        "MEDUSA_LABELS",
        "",
        "labels of the node, KEY=VALUE with commas between: placements select nodes by them",
        _LABELS,
    ),
    Setting(
        "capacity",
        "MEDUSA_CAPACITY",
        "100",
        "how much the node can do, compared with others; 0: nothing, as long as others can",
        _CAPACITY,
    ),
    Setting(
        "most_fragments",
        "MEDUSA_MOST_FRAGMENTS",
        "",
        "how many fragments may run on the node at the same time; empty: any number",
        _MOST_FRAGMENTS,
    ),
    Setting(
        "data",
        "MEDUSA_DATA",
        ".medusa",
        "folder for logs, checkpoints, embedded servers",
        kind=Kind.PATH,
    ),
    Setting(
        "kafka.bootstrap_servers",
        "KAFKA_BOOTSTRAP_SERVERS",
        "127.0.0.1:9092",
        "Kafka brokers",
        _BROKERS,
    ),
    Setting(
        "kafka.security_protocol",
        "KAFKA_SECURITY_PROTOCOL",
        "PLAINTEXT",
        "how the brokers' listener is secured, in Kafka's words",
        _SECURITY,
        is_access=True,
    ),
    Setting(
        "kafka.sasl_mechanism",
        "KAFKA_SASL_MECHANISM",
        "",
        "how kafka.user proves who it is",
        _MECHANISM,
        is_access=True,
    ),
    *_access("kafka", "KAFKA"),
    Setting(
        "zookeeper.connect",
        "ZOOKEEPER_CONNECT",
        "127.0.0.1:2181/medusa",
        "ZooKeeper, with chroot",
        _ZOOKEEPER,
    ),
    Setting(
        "zookeeper.session_timeout",
        "ZOOKEEPER_SESSION_TIMEOUT",
        "10s",
        "how long a node may be silent before others take over what it ran",
        _SESSION,
    ),
    *_access("zookeeper", "ZOOKEEPER", _ZOOKEEPER_USER),
    Setting(
        "suspect_after",
        "MEDUSA_SUSPECT_AFTER",
        "1s",
        "how long a node may send no heartbeat through Kafka before this node suspects it",
        _SUSPECT_AFTER,
    ),
    Setting(
        "registry.url", "SCHEMA_REGISTRY_URL", "http://127.0.0.1:8081", "schema registry", _URL
    ),
    *_access("registry", "SCHEMA_REGISTRY"),
    Setting(
        "spark.master",
        "MEDUSA_SPARK_MASTER",
        "local[2]",
        "Spark master of a node's session",
        _MASTER,
    ),
    Setting("spark.memory", "MEDUSA_SPARK_MEMORY", "1g", "heap of a node's Spark driver", _MEMORY),
    Setting(
        "spark.cores",
        "MEDUSA_SPARK_CORES",
        "2",
        "how many cores of a cluster a node takes at most; of this machine spark.master says it",
        _CORES,
    ),
    Setting(
        "spark.executor_memory",
        "MEDUSA_SPARK_EXECUTOR_MEMORY",
        "1g",
        "heap of each of a node's executors on a cluster",
        _MEMORY,
    ),
    Setting(
        "spark.host",
        "MEDUSA_SPARK_HOST",
        "",
        "where a cluster's workers reach this machine; empty: as the master does",
        _OWN_HOST,
    ),
    Setting(
        "spark.python",
        "PYSPARK_PYTHON",
        "",
        "Python of Spark's workers, with Medusa in it; empty: the path of the node's own",
    ),
    Setting(
        "checkpoints",
        "MEDUSA_CHECKPOINTS",
        "",
        "checkpoint root, which a cluster's workers have, too; empty: in the data folder",
        _FOLDER,
    ),
    Setting(
        "store.url",
        "MEDUSA_STORE_URL",
        "",
        "where checkpoints are copied for passive_standby, the same for all nodes: a folder that "
        "they mount, or s3://BUCKET/PREFIX; empty: nowhere",
        _STORE,
    ),
    Setting(
        "store.endpoint",
        "MEDUSA_STORE_ENDPOINT",
        "",
        "http:// or https:// and HOST:PORT of an S3-compatible store; empty: that of AWS",
        _ENDPOINT,
        is_access=True,
    ),
    Setting(
        "store.region",
        "MEDUSA_STORE_REGION",
        "",
        "region of the bucket; empty: as AWS_REGION says",
        is_access=True,
    ),
    Setting(
        "store.access_key",
        "MEDUSA_STORE_ACCESS_KEY",
        "",
        "id of the key for the bucket; empty: as AWS_ACCESS_KEY_ID and other variables say",
        is_access=True,
    ),
    Setting(
        "store.secret_key",
        "MEDUSA_STORE_SECRET_KEY",
        "",
        "the secret of store.access_key",
        _SECRET,
        Kind.SECRET,
        is_access=True,
    ),
    Setting(
        "keys",
        "MEDUSA_KEYS",
        "~/.config/medusa/keys",
        "folder of the private keys with which contracts are signed, and of partners' known keys",
        kind=Kind.PATH,
    ),
    Setting(
        "cache", "MEDUSA_CACHE", "~/.cache/medusa", "folder for downloaded jars", kind=Kind.PATH
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force, and where each value came from.

    `sources` maps a setting's name to `flag`, `environment`, `project file`, `user file` or
    `default`.
    """

    participant: str
    node: str
    labels: str
    capacity: str
    most_fragments: str
    data: str
    kafka_bootstrap_servers: str
    kafka_security_protocol: str
    kafka_sasl_mechanism: str
    kafka_user: str
    kafka_password: SecretSetting
    kafka_tls_ca: str
    kafka_tls_certificate: str
    kafka_tls_key: str
    kafka_tls_key_password: SecretSetting
    zookeeper_connect: str
    zookeeper_session_timeout: str
    zookeeper_user: str
    zookeeper_password: SecretSetting
    zookeeper_tls_ca: str
    zookeeper_tls_certificate: str
    zookeeper_tls_key: str
    zookeeper_tls_key_password: SecretSetting
    suspect_after: str
    registry_url: str
    registry_user: str
    registry_password: SecretSetting
    registry_tls_ca: str
    registry_tls_certificate: str
    registry_tls_key: str
    registry_tls_key_password: SecretSetting
    spark_master: str
    spark_memory: str
    spark_cores: str
    spark_executor_memory: str
    spark_host: str
    spark_python: str
    checkpoints: str
    store_url: str
    store_endpoint: str
    store_region: str
    store_access_key: str
    store_secret_key: SecretSetting
    keys: str
    cache: str
    sources: tuple[tuple[str, str], ...] = ()


def combine(layers: tuple[tuple[str, Mapping[str, str]], ...]) -> Settings:
    """Combine layers, the strongest first; each is (where it comes from, dotted name → value)."""
    values: dict[str, Any] = {}
    sources: list[tuple[str, str]] = []
    parted = tuple((source, _without_login(layer)) for source, layer in layers)
    for setting in SETTINGS:
        source, value = next(
            ((source, layer[setting.name]) for source, layer in parted if setting.name in layer),
            ("default", setting.default),
        )
        sources.append((setting.name, source))
        secret = setting.kind is Kind.SECRET
        values[setting.field] = SecretSetting(value, setting.name) if secret else value
    return Settings(sources=tuple(sources), **values)


def secret_variables(settings: Settings) -> frozenset[str]:
    """The variables of an environment that may hold a secret of ours."""
    secret = [setting for setting in SETTINGS if setting.kind is Kind.SECRET]
    referred = {getattr(settings, setting.field).variable for setting in secret} - {None}
    with_login = {setting.environment for setting in SETTINGS if setting.name == "registry.url"}
    return frozenset({setting.environment for setting in secret} | referred | with_login)


def problem_with(name: str, value: str) -> Problem | None:
    """Why a setting cannot be so; None if it can. The caller knows where it was written."""
    setting = next((one for one in SETTINGS if one.name == name), None)
    if setting is None:
        return Problem(
            f"{name} is not a setting", choices=tuple(sorted(one.name for one in SETTINGS))
        )
    if not re.fullmatch(setting.form.pattern, value):
        shown = repr(_PASSWORD.sub("//…@", value)) if setting.kind is not Kind.SECRET else "that"
        return Problem(f"{name} cannot be {shown}: it is {setting.form.words}")
    return _repeated(value) if name == "labels" else None


def _repeated(text: str) -> Problem | None:
    """The problem of labels of which one occurs twice, which no pattern finds."""
    try:
        parse_labels(text)
    except ValueError as error:
        return Problem(f"labels cannot be {text!r}: {error}")
    return None


def tells_a_secret(name: str, value: str) -> bool:
    """Whether a value holds a secret itself, not a reference: it must not be seen by others."""
    kind = next((one.kind for one in SETTINGS if one.name == name), Kind.TEXT)
    if kind is Kind.SECRET:
        return bool(value) and not secrets.is_reference(value)
    return name == "registry.url" and ":" in urlsplit(value).netloc.rpartition("@")[0]


def _without_login(layer: Mapping[str, str]) -> Mapping[str, str]:
    """A layer whose registry.url has no user and password in it: they are settings of their own."""
    url = urlsplit(layer.get("registry.url", ""))
    login, at, host = url.netloc.rpartition("@")
    if not at:
        return layer
    user, _, password = login.partition(":")
    found = {"registry.user": unquote(user), "registry.password": unquote(password)}
    return {**found, **layer, "registry.url": urlunsplit(url._replace(netloc=host))}
