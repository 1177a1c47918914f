"""Validation of subject names, versions and ids on the command line."""

import re

import click

from schemas.administration import Version
from schemas.outside import is_text


def prefix_of_subjects(word: str) -> str:
    """Prefix of subject names; an empty one matches all.

    Raises:
        BadParameter: it contains bytes that are not text.
    """
    if not is_text(word):
        raise click.BadParameter(f"{word!r} is not UTF-8 text")
    return word


def name_of_subject(word: str) -> str:
    """Name of one subject.

    Raises:
        BadParameter: it is empty, or contains bytes that are not text.
    """
    if not word:
        raise click.BadParameter("the name is empty; `medusa schema list` shows what there is")
    return prefix_of_subjects(word)


def as_version(word: str) -> Version | None:
    """Version: a number from 1, or `latest`; None if it is neither."""
    return "latest" if word == "latest" else as_id(word)


def as_id(word: str) -> int | None:
    """Schema id: a number from 1; None if it is not one, or longer than any id of a registry."""
    number = int(word) if re.fullmatch(r"[0-9]{1,10}", word) else 0
    return number or None
