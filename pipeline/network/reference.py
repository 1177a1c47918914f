"""The list of functions as Markdown, for the reference; made from the table that is in force."""

from pipeline.network.functions import REFUSED, SECTIONS


def function_tables() -> str:
    """Every allowed function by section, with what it gives and when it fails, then those refused.

    >>> "| `upper(text)` | STRING |" in function_tables()
    True
    """
    parts = []
    for title, table in SECTIONS:
        rows = [
            _row(f"`{f.signature}`" + _also(f.also), f.result, f.meaning, f.fails) for f in table
        ]
        head = [
            f"### {title}",
            "",
            _row("function", "result", "meaning", "fails when"),
            "|---" * 4 + "|",
        ]
        parts.append("\n".join([*head, *rows]))
    refused = [_row(f"`{name}`", reason, instead) for name, (reason, instead) in REFUSED.items()]
    head = ["### Refused", "", _row("function", "it", "instead"), "|---" * 3 + "|"]
    parts.append("\n".join([*head, *refused]))
    return "\n" + "\n\n".join(parts) + "\n\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _also(names: tuple[str, ...]) -> str:
    return "" if not names else ", also " + ", ".join(f"`{name}`" for name in names)
