"""The `medusa node` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__

command = group(
    "node",
    "Nodes: agent processes, each with its own Spark session, that run fragments.",
    {
        "start": Entry(f"{_HERE}.start", "Run a node until it is asked to end."),
        "list": Entry(f"{_HERE}.list", "Show the nodes that are up."),
    },
)
