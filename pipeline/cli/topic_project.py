"""The project that `medusa init --topic` writes: a network for an existing topic, and settings."""

from dataclasses import dataclass

from pipeline import durations
from pipeline.cli.project import DOCUMENT_FILE, PROJECT_FILE
from pipeline.clock import Clock
from pipeline.ids import TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.proposals.document import idle_after_ms, lateness_ms
from pipeline.operations.proposals.topic import Proposal, propose
from pipeline.settings import SETTINGS, Kind, Settings

_SETTINGS = (
    "# Settings of this project, as they were when it was made. `medusa config show` lists all of\n"
    "# them and where each value comes from; a variable in the environment or a flag is stronger\n"
    "# than this file. Passwords are not in it: write where they lie, as in ${env:NAME}.\n"
)
_ADDRESSES = ("participant", "kafka.bootstrap_servers", "zookeeper.connect", "registry.url")


@dataclass(frozen=True, slots=True)
class TopicProject:
    """The files of a project, by relative path, and the proposal in them."""

    files: dict[str, bytes]
    proposal: Proposal

    @property
    def proposed(self) -> dict[str, object]:
        """The proposals, for programs."""
        found = self.proposal.found
        return {
            "records": found.records,
            "event_time": found.event_time.expression,
            "lateness": durations.format(lateness_ms(found.disorder)),
            "idle_after": durations.format(idle_after_ms(found.gap_ms)),
            "key": found.key,
        }


def topic_project(
    topic: TopicName,
    event_time: str | None,
    settings: Settings,
    connections: Connections,
    clock: Clock,
) -> TopicProject:
    """Propose a network for a topic and make a project of it; raises as `propose` does."""
    made = propose(topic, event_time, DOCUMENT_FILE, settings, connections, clock)
    files = {PROJECT_FILE: settings_text(settings).encode(), DOCUMENT_FILE: made.document.encode()}
    return TopicProject(files, made)


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
