"""The `medusa registry` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__

command = group(
    "registry",
    "The schema registry that lies in ZooKeeper, for servers without `medusa up`.",
    {
        "serve": Entry(f"{_HERE}.serve", "Serve the schema registry until it is asked to end."),
    },
)
