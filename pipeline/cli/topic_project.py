"""Files of the project that `medusa init --topic` writes: a proposed network, and settings."""

from pipeline.cli.project import DOCUMENT_FILE, PROJECT_FILE
from pipeline.operations.proposals.topic import Proposal
from pipeline.settings import SETTINGS, Kind, Settings

_SETTINGS = (
    "# Settings of this project, as they were when it was made. `medusa config show` lists all of\n"
    "# them and where each value comes from; a variable in the environment or a flag is stronger\n"
    "# than this file. Passwords are not in it: write where they lie, as in ${env:NAME}.\n"
)
_ADDRESSES = ("participant", "kafka.bootstrap_servers", "zookeeper.connect", "registry.url")


def project_files(proposal: Proposal, settings: Settings) -> dict[str, bytes]:
    """The files by relative path."""
    texts = {PROJECT_FILE: settings_text(settings), DOCUMENT_FILE: proposal.document}
    return {name: text.encode() for name, text in texts.items()}


def settings_text(settings: Settings) -> str:
    """The project file: addresses and authentication settings in force, without any secret."""
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
    """A value in YAML, quoted if it contains a character with a meaning in YAML."""
    plain = all(letter.isalnum() or letter in "_-./:," for letter in value) and value.isascii()
    return value if plain and value else "'" + value.replace("'", "''") + "'"
