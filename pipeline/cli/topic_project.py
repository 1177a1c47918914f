"""The project that `medusa init --topic` writes: a network for a topic that there is already."""

from dataclasses import dataclass

from pipeline import durations
from pipeline.cli.connections import Connections
from pipeline.cli.measuring import Found, measure
from pipeline.cli.project import DOCUMENT_FILE, PROJECT_FILE
from pipeline.cli.proposing import (
    Subscribed,
    document,
    idle_after_ms,
    lateness_ms,
    output_topic,
)
from pipeline.cli.sampling import sample
from pipeline.cli.streams import newest_schema
from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.ids import TopicName
from pipeline.network import avro_types
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.settings import SETTINGS, Kind, Settings
from schemas.avro import parse

_SETTINGS = (
    "# Settings of this project, as they were when it was made. `medusa config show` lists all of\n"
    "# them and where each value comes from; a variable in the environment or a flag is stronger\n"
    "# than this file. Passwords are not in it: write where they lie, as in ${env:NAME}.\n"
)
_ADDRESSES = ("participant", "kafka.bootstrap_servers", "zookeeper.connect", "registry.url")


@dataclass(frozen=True, slots=True)
class TopicProject:
    """What is to be written, by relative path, and what was found in the topic."""

    files: dict[str, bytes]
    output: TopicName
    found: Found

    @property
    def proposed(self) -> dict[str, object]:
        """The proposals, for programs."""
        return {
            "records": self.found.records,
            "event_time": self.found.event_time.expression,
            "lateness": durations.format(lateness_ms(self.found.disorder)),
            "idle_after": durations.format(idle_after_ms(self.found.gap_ms)),
            "key": self.found.key,
        }


def topic_project(
    topic: TopicName,
    event_time: str | None,
    settings: Settings,
    connections: Connections,
    clock: Clock,
) -> TopicProject:
    """Look into a topic and make a project for it.

    Raises:
        RefusedError: there is no such topic.
        SchemaError: it has no schema in the registry, or one that is no record.
        InputError: nothing can be the event time, or what was said is no expression for it.
        UnavailableError: Kafka or the registry does not answer.
    """
    if topic not in connections.topics.describe([topic]):
        raise RefusedError(
            f"there is no topic {topic}",
            place=f"Kafka {settings.kafka_bootstrap_servers}",
            hint="kafka.bootstrap_servers says where Kafka is, as in --set "
            "kafka.bootstrap_servers=HOST:PORT.",
        )
    registered = newest_schema(topic, connections)
    schema = parse(registered.text)
    columns = avro_types.read(schema.value).columns
    found = measure(columns, sample(topic, schema, columns, connections, clock), event_time)
    text = document(Subscribed(topic, registered.subject, int(registered.version), columns), found)
    known = SchemaText(registered.text, f"subject {registered.subject}")
    load(text, DOCUMENT_FILE, dict.fromkeys(schema_references(text, DOCUMENT_FILE), known))
    files = {PROJECT_FILE: settings_text(settings).encode(), DOCUMENT_FILE: text.encode()}
    return TopicProject(files, output_topic(topic), found)


def settings_text(settings: Settings) -> str:
    """The project file: the addresses in force, and how to get in, without any secret."""
    sections: dict[str, list[str]] = {}
    for setting in SETTINGS:
        value = getattr(settings, setting.field)
        access = setting.is_access and setting.kind is not Kind.SECRET and value != setting.default
        if not access and setting.name not in _ADDRESSES:
            continue
        section, _, rest = setting.name.partition(".")
        line = f"  {rest}: {_quoted(value)}" if rest else f"{section}: {_quoted(value)}"
        sections.setdefault(section, [f"{section}:"] if rest else []).append(line)
    return _SETTINGS + "".join(f"{line}\n" for lines in sections.values() for line in lines)


def _quoted(value: str) -> str:
    """A value in YAML; in quotes if anything in it could mean something there."""
    plain = all(letter.isalnum() or letter in "_-./:," for letter in value) and value.isascii()
    return value if plain and value else "'" + value.replace("'", "''") + "'"
