"""Command groups below `medusa`, with their subcommands."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__
_SCHEMAS, _REGISTRY = "Schemas", "The registry"

example = group(
    "example",
    "Examples: networks with a producer, and a reference that their results are compared with.",
    {
        "list": Entry(f"{_HERE}.example.list", "List the examples that come with Medusa."),
        "run": Entry(f"{_HERE}.example.run", "Run one on made-up input, and check every result."),
    },
)

schema = group(
    "schema",
    "Avro schemas in the registry: ours, or another that registry.url or --registry names.",
    {
        "register": Entry(
            f"{_HERE}.schema.register", "Register a schema under a subject.", _SCHEMAS
        ),
        "check": Entry(
            f"{_HERE}.schema.check", "Check whether a schema would fit a subject.", _SCHEMAS
        ),
        "list": Entry(
            f"{_HERE}.schema.list", "List the subjects with their newest version.", _SCHEMAS
        ),
        "show": Entry(f"{_HERE}.schema.show", "Print the schema of a subject or id.", _SCHEMAS),
        "diff": Entry(f"{_HERE}.schema.diff", "Show what changed between two versions.", _SCHEMAS),
        "evolve": Entry(f"{_HERE}.schema.evolve", "Show which changes are permitted.", _SCHEMAS),
        "level": Entry(f"{_HERE}.schema.level", "Show or set compatibility levels.", _REGISTRY),
        "mode": Entry(f"{_HERE}.schema.mode", "Show or set what may be written.", _REGISTRY),
        "delete": Entry(f"{_HERE}.schema.delete", "Delete versions of a subject.", _REGISTRY),
        "export": Entry(
            f"{_HERE}.schema.export", "Write subjects into a file, ids and all.", _REGISTRY
        ),
        "import": Entry(
            f"{_HERE}.schema.import_", "Register the schemas of such a file.", _REGISTRY
        ),
    },
)

connect = group(
    "connect",
    "Connectors: the way of data into a topic, and of results out of one.",
    {
        "list": Entry(f"{_HERE}.connect.list", "List the kinds, with what each guarantees."),
        "show": Entry(f"{_HERE}.connect.show", "Show what a connector would read, and its schema."),
        "run": Entry(f"{_HERE}.connect.run", "Run a connector until it is stopped."),
    },
)

dlq = group(
    "dlq",
    "Dead letters: records that a fragment could not process, kept byte for byte.",
    {
        "list": Entry(f"{_HERE}.dlq.list", "Count dead letters by fragment and reason."),
        "show": Entry(f"{_HERE}.dlq.show", "Print dead letters, decoded, with what is wrong."),
        "redrive": Entry(
            f"{_HERE}.dlq.redrive", "Send dead letters to their fragment again, once."
        ),
        "purge": Entry(f"{_HERE}.dlq.purge", "Remove old dead letters for good."),
    },
)

offsets = group(
    "offsets",
    "Positions: up to where the results of a fragment are committed, per input partition.",
    {
        "show": Entry(f"{_HERE}.offsets.show", "Show how far fragments have read their inputs."),
        "export": Entry(
            f"{_HERE}.offsets.export", "Print positions in the formats of other tools."
        ),
    },
)

catalog = group(
    "catalog",
    "The catalog: networks with their versions, epochs, and the schemas of our own registry.",
    {
        "backup": Entry(
            f"{_HERE}.catalog.backup", "Write the catalog and our schemas into a file."
        ),
        "upgrade": Entry(f"{_HERE}.catalog.upgrade", "Raise the stored format to the newest."),
        "restore": Entry(f"{_HERE}.catalog.restore", "Restore a catalog from such a file."),
    },
)

node = group(
    "node",
    "Nodes: agent processes, each with its own Spark session, that run fragments.",
    {
        "start": Entry(f"{_HERE}.node.start", "Run a node until it is stopped."),
        "list": Entry(f"{_HERE}.node.list", "Show the nodes that are up."),
        "drain": Entry(f"{_HERE}.node.drain", "Move what a node runs to other nodes."),
        "undrain": Entry(f"{_HERE}.node.undrain", "Let a drained node run fragments again."),
    },
)

registry = group(
    "registry",
    "The schema registry, stored in ZooKeeper, for servers without `medusa up`.",
    {
        "serve": Entry(f"{_HERE}.registry.serve", "Serve the schema registry until it is stopped."),
    },
)

config = group(
    "config",
    "Settings: flag, environment, project file, user file, default; in that order.",
    {"show": Entry(f"{_HERE}.config.show", "Show every setting.")},
)
