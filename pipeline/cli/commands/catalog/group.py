"""The `medusa catalog` group."""

from pipeline.cli.lazy import Entry, group

_HERE = __package__

command = group(
    "catalog",
    "The catalog: networks with their versions, epochs, and the schemas of our own registry.",
    {
        "backup": Entry(f"{_HERE}.backup", "Write the catalog and our schemas into a file."),
        "upgrade": Entry(f"{_HERE}.upgrade", "Let the newest format be written from now on."),
        "restore": Entry(f"{_HERE}.restore", "Bring a catalog back from such a file."),
    },
)
