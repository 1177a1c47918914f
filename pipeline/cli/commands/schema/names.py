"""Names of subjects, versions and ids as they are typed."""

import re

import click

from schemas.administration import Version
from schemas.outside import is_text


def prefix_of_subjects(word: str) -> str:
    """What names begin with; an empty one means all.

    Raises:
        BadParameter: it holds bytes that are no text.
    """
    if not is_text(word):
        raise click.BadParameter(f"{word!r} is not UTF-8 text")
    return word


def name_of_subject(word: str) -> str:
    """The name of one.

    Raises:
        BadParameter: it is empty, or holds bytes that are no text.
    """
    if not word:
        raise click.BadParameter("the name is empty; `medusa schema list` shows what there is")
    return prefix_of_subjects(word)


def as_version(word: str) -> Version | None:
    """A number from 1, or `latest`; None: it is neither."""
    return "latest" if word == "latest" else as_id(word)


def as_id(word: str) -> int | None:
    """A number from 1; None: it is none, or longer than any that a registry gives."""
    number = int(word) if re.fullmatch(r"[0-9]{1,10}", word) else 0
    return number or None
