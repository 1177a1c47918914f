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

participant = group(
    "participant",
    "Participants of a federation: the keys with which they sign contracts.",
    {
        "init": Entry(f"{_HERE}.participant.init", "Create the key of the participant."),
        "show": Entry(f"{_HERE}.participant.show", "Show the keys of a participant."),
        "trust": Entry(f"{_HERE}.participant.trust", "Confirm the key of a partner."),
        "key": Entry(f"{_HERE}.groups", "Change the key of the participant.", name="key"),
    },
)

key = group(
    "key",
    "The key with which the participant signs contracts.",
    {"rotate": Entry(f"{_HERE}.participant.key_rotate", "Sign with a new key from now on.")},
)

_NEGOTIATION, _CONTRACTS = "Negotiation", "Contracts"
contract = group(
    "contract",
    "Contracts with other participants, signed by both.",
    {
        "propose": Entry(f"{_HERE}.contract.propose", "Propose a new contract.", _NEGOTIATION),
        "counter": Entry(
            f"{_HERE}.contract.counter", "Answer a proposal with other terms.", _NEGOTIATION
        ),
        "accept": Entry(f"{_HERE}.contract.accept", "Accept a proposal.", _NEGOTIATION),
        "renew": Entry(
            f"{_HERE}.contract.renew", "Propose other terms for a contract.", _NEGOTIATION
        ),
        "cancel": Entry(
            f"{_HERE}.contract.cancel", "Withdraw a proposal, or end a contract.", _NEGOTIATION
        ),
        "list": Entry(f"{_HERE}.contract.list", "List all contracts.", _CONTRACTS),
        "show": Entry(f"{_HERE}.contract.show", "Show terms and documents.", _CONTRACTS),
        "check": Entry(
            f"{_HERE}.contract.check", "Check whether a fragment may be sent.", _CONTRACTS
        ),
        "verify": Entry(f"{_HERE}.contract.verify", "Verify all documents.", _CONTRACTS),
        "demo": Entry(
            f"{_HERE}.contract.demo",
            "Show three participants that trade load, and explain each decision.",
            "Simulation",
        ),
        "simulate": Entry(
            f"{_HERE}.contract.simulate",
            "Simulate federations that trade load by contracts.",
            "Simulation",
        ),
    },
)

ledger = group(
    "ledger",
    "What contracts were used for and what is owed, in entries that both have signed.",
    {
        "show": Entry(f"{_HERE}.ledger.show", "Show what was settled and what is owed."),
        "verify": Entry(f"{_HERE}.ledger.verify", "Find every mistake in a ledger."),
        "pay": Entry(f"{_HERE}.ledger.pay", "Record a payment to the partner."),
        "confirm": Entry(f"{_HERE}.ledger.confirm", "Sign what the partner has signed."),
        "export": Entry(f"{_HERE}.ledger.export", "Write a ledger into a file."),
    },
)

config = group(
    "config",
    "Settings: flag, environment, project file, user file, default; in that order.",
    {"show": Entry(f"{_HERE}.config.show", "Show every setting.")},
)
