"""The `medusa config` group."""

from pipeline.cli.lazy import Entry, group

command = group(
    "config",
    "Settings: flag, environment, project file, user file, default; in that order.",
    {"show": Entry(f"{__package__}.show", "Show every setting.")},
)
