"""Settings: flag, environment, project file, user file, default, in that order.

The pure part: what settings there are and how layers combine. Reading the environment and the
files is done by `pipeline/cli/project.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import Problem
from pipeline.names import NAME_PATTERN


@dataclass(frozen=True, slots=True)
class Form:
    """What a value looks like: a pattern, and the same in words."""

    pattern: str
    words: str


_NAME = Form(NAME_PATTERN, "lower case letters, digits and _, a letter first")
_NODE = Form(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "letters, digits, - . and _")
_MASTER = Form(
    r"local(\[(\*|[1-9][0-9]*)(,[1-9][0-9]*)?\])?|yarn|(spark|k8s)://\S+",
    "local[2], local[*], spark://HOST:PORT, yarn or k8s://URL",
)
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_ADDRESS = rf"{_HOST}(:{_PORT})?"
_ADDRESSES = rf"{_ADDRESS}(\s*,\s*{_ADDRESS})*"
_BROKERS = Form(
    rf"([A-Za-z_]+://)?{_ADDRESS}(\s*,\s*([A-Za-z_]+://)?{_ADDRESS})*",
    "HOST:PORT, or several of them with commas between",
)
_ZOOKEEPER = Form(
    rf"{_ADDRESSES}(/[^\s,]*)?",
    "HOST:PORT, or several of them with commas between, and perhaps a path: HOST:PORT/medusa",
)
_SESSION = Form(r"([1-9]|[1-5][0-9]|60)s", "whole seconds, from 1s to 60s")
_URL = Form(rf"https?://([^\s/@]+@)?{_ADDRESS}(/\S*)?", "http:// or https:// and HOST:PORT")
_PASSWORD = re.compile(r"//[^/\s]*@")
_MEMORY = Form(r"[1-9][0-9]*[kKmMgGtT]", "a whole number and k, m, g or t, such as 1g or 1536m")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: dotted name, variable in the environment, default, meaning, form of a value."""

    name: str
    environment: str
    default: str
    meaning: str
    form: Form = Form(r"(?s).*", "anything")


SETTINGS: tuple[Setting, ...] = (
    Setting("participant", "MEDUSA_PARTICIPANT", "local", "the owner of networks and nodes", _NAME),
    Setting("node", "MEDUSA_NODE", "node1", "the name of the node this machine runs", _NODE),
    Setting("data", "MEDUSA_DATA", ".medusa", "folder for logs, checkpoints, embedded servers"),
    Setting(
        "kafka.bootstrap_servers",
        "KAFKA_BOOTSTRAP_SERVERS",
        "127.0.0.1:9092",
        "Kafka brokers",
        _BROKERS,
    ),
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
    Setting(
        "registry.url", "SCHEMA_REGISTRY_URL", "http://127.0.0.1:8081", "schema registry", _URL
    ),
    Setting(
        "spark.master",
        "MEDUSA_SPARK_MASTER",
        "local[2]",
        "Spark master of a node's session",
        _MASTER,
    ),
    Setting("spark.memory", "MEDUSA_SPARK_MEMORY", "1g", "heap of a node's Spark driver", _MEMORY),
    Setting("checkpoints", "MEDUSA_CHECKPOINTS", "", "checkpoint root; empty: in the data folder"),
    Setting("cache", "MEDUSA_CACHE", "~/.cache/medusa", "folder for downloaded jars"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force, and where each value came from.

    `sources` maps a setting's name to `flag`, `environment`, `project file`, `user file` or
    `default`.
    """

    participant: str
    node: str
    data: str
    kafka_bootstrap_servers: str
    zookeeper_connect: str
    zookeeper_session_timeout: str
    registry_url: str
    spark_master: str
    spark_memory: str
    checkpoints: str
    cache: str
    sources: tuple[tuple[str, str], ...] = ()


def combine(layers: tuple[tuple[str, Mapping[str, str]], ...]) -> Settings:
    """Combine layers, the strongest first; each is (where it comes from, dotted name → value)."""
    values: dict[str, str] = {}
    sources: list[tuple[str, str]] = []
    for setting in SETTINGS:
        found = next(
            ((source, layer[setting.name]) for source, layer in layers if setting.name in layer),
            ("default", setting.default),
        )
        sources.append((setting.name, found[0]))
        values[setting.name.replace(".", "_")] = found[1]
    return Settings(sources=tuple(sources), **values)


def problem_with(name: str, value: str) -> Problem | None:
    """Why a setting cannot be so; None if it can. The caller knows where it was written."""
    setting = next((one for one in SETTINGS if one.name == name), None)
    if setting is None:
        return Problem(
            f"{name} is not a setting", choices=tuple(sorted(one.name for one in SETTINGS))
        )
    if not re.fullmatch(setting.form.pattern, value):
        shown = _PASSWORD.sub("//…@", value)
        return Problem(f"{name} cannot be {shown!r}: it is {setting.form.words}")
    return None
