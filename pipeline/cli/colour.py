"""Colours of the lines that `plan` and `diff` print, by the mark that begins a line. Pure."""

from collections.abc import Mapping

from rich.text import Text

_STYLES: Mapping[str, str] = {
    "  + ": "green",
    "  ~ ": "yellow",
    "  - ": "red",
    "  ! ": "bold red",
    "refused,": "bold red",
    "warning:": "yellow",
}


def marked(text: str) -> Text:
    """The text with a colour for every line that begins with a mark."""
    return Text("\n").join(Text(line, style=_style(line)) for line in text.split("\n"))


def _style(line: str) -> str:
    return next((style for mark, style in _STYLES.items() if line.startswith(mark)), "")
