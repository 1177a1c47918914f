"""The `medusa example` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__

command = group(
    "example",
    "Examples: networks with a producer, and a reference that their results are compared with.",
    {
        "list": Entry(f"{_HERE}.list", "List the examples that come with Medusa."),
        "run": Entry(f"{_HERE}.run", "Run one on made-up input, and check every result."),
    },
)
