"""The kinds of connectors: those that come with Medusa, and those of installed packages."""

from collections.abc import Mapping

from connectors.catalogue import Kind, others, with_others
from connectors.files import sink as files_sink
from connectors.files import source as files_source
from connectors.guarantee import Guarantee
from connectors.postgresql import sink as postgresql_sink

FILES = Kind(
    name="files",
    summary="files of a folder: JSON lines and CSV to read, JSON lines and Parquet to write",
    guarantee=Guarantee.EXACTLY_ONCE,
    needs=(
        "Read: files only grow, and are rotated by renaming them inside of the folder.",
        "Written: a file system whose locks and renames hold on all machines that write.",
    ),
    source=files_source.make,
    sink=files_sink.make,
)
POSTGRESQL = Kind(
    name="postgresql",
    summary="rows of a PostgreSQL table, stored by key or id, corrections included",
    guarantee=Guarantee.EXACTLY_ONCE,
    needs=(
        "PostgreSQL 13 or newer, and a user who may insert, update and delete rows of the table.",
        "A primary or unique key of the columns of `by`, or of `medusa_id`.",
    ),
    sink=postgresql_sink.make,
)


def kinds() -> Mapping[str, Kind]:
    """All kinds by name.

    Raises:
        InputError: an installed package declares a connector that cannot be used.
    """
    return with_others((FILES, POSTGRESQL), others())
