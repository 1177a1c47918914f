"""The `medusa schema` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__
_SCHEMAS, _REGISTRY = "Schemas", "The registry"

command = group(
    "schema",
    "Avro schemas in the registry: ours, or another that registry.url or --registry names.",
    {
        "register": Entry(f"{_HERE}.register", "Register a schema under a subject.", _SCHEMAS),
        "check": Entry(f"{_HERE}.check", "Say whether a schema would fit a subject.", _SCHEMAS),
        "list": Entry(f"{_HERE}.list", "List the subjects with their newest version.", _SCHEMAS),
        "show": Entry(f"{_HERE}.show", "Print the schema of a subject or id.", _SCHEMAS),
        "diff": Entry(f"{_HERE}.diff", "Say what changed between two versions.", _SCHEMAS),
        "evolve": Entry(f"{_HERE}.evolve", "Say what may be changed next, and what not.", _SCHEMAS),
        "level": Entry(f"{_HERE}.level", "Show or set compatibility levels.", _REGISTRY),
        "mode": Entry(f"{_HERE}.mode", "Show or set what may be written.", _REGISTRY),
        "delete": Entry(f"{_HERE}.delete", "Delete versions of a subject.", _REGISTRY),
        "export": Entry(f"{_HERE}.export", "Write subjects into a file, ids and all.", _REGISTRY),
        "import": Entry(f"{_HERE}.import_", "Bring such a file into a registry.", _REGISTRY),
    },
)
