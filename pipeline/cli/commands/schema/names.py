"""Names of subjects as they are typed: a registry can be asked for them, or they are refused."""

import click

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
