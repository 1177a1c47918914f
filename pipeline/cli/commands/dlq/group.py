"""The `medusa dlq` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__

command = group(
    "dlq",
    "Dead letters: records that a fragment could not process, kept byte for byte.",
    {
        "list": Entry(f"{_HERE}.list", "Count dead letters by fragment and reason."),
        "show": Entry(f"{_HERE}.show", "Print dead letters, decoded, with what is wrong."),
        "redrive": Entry(f"{_HERE}.redrive", "Send dead letters to their fragment again, once."),
        "purge": Entry(f"{_HERE}.purge", "Remove old dead letters for good."),
    },
)
