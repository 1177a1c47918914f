"""The `medusa offsets` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__

command = group(
    "offsets",
    "Positions: up to where the results of a fragment are committed, per input partition.",
    {
        "show": Entry(f"{_HERE}.show", "Show how far fragments have read their inputs."),
        "export": Entry(f"{_HERE}.export", "Print positions as other tools take them."),
    },
)
