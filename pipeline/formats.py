"""The format of all that programs of Medusa share, and the refusal of a newer one. Pure.

One number covers catalog records, commit markers, boundaries and the headers of dead letters: it
counts up when any of them is written in a way that an earlier program would misread.
Every stored thing carries the number that it was written in. A program reads every number up to
`NEWEST`. A new field whose absence means what it meant before needs no new number.

The catalog's own record says up to which number things may be written; see
`pipeline/catalog/formats.py`.
"""

from typing import Final

from pipeline.errors import NewerFormatError

NEWEST: Final = 1
"""The newest format that this program understands."""
WRITTEN: Final = 1
"""What its encoders write. Once there is a second form, they are told what the catalog allows."""


def check(version: int, what: str, place: str, newest: int = NEWEST) -> None:
    """Make sure that this program understands something stored.

    Args:
        version: the format in which it was written.
        what: what it is, for the error.
        place: where it was found.
        newest: the newest format that is understood.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
    """
    if version > newest:
        raise NewerFormatError(
            f"a newer Medusa wrote this {what}: format {version}, this one reads up to {newest}",
            place=place,
            hint="use the version of Medusa that wrote it, or a newer one. Nothing was changed.",
        )
