"""Command groups that import a command only when it is called, for a fast start."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from pipeline.cli.common import common_options


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a command in its group: module, one line of help, and heading in the list.

    `name`: the command's variable in its module.
    """

    module: str
    help: str
    section: str = "Commands"
    name: str = "command"


class LazyGroup(click.Group):
    """Group whose help imports none of its commands."""

    def __init__(self, entries: Mapping[str, Entry], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type] # click's own attributes
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the entries."""
        del ctx
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is none of that name."""
        del ctx
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.module), entry.name)
        assert isinstance(command, click.Command)  # noqa: S101 - every command module defines one
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown one suggests a similar name."""
        unknown = args and args[0] not in self._entries and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            close = difflib.get_close_matches(args[0], self._entries, n=1)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"there is no command {args[0]!r}{guess}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands with this prefix, without importing them, and the group's own options."""
        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in self._entries.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        del ctx
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self._entries.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)


def group(name: str, description: str, entries: Mapping[str, Entry]) -> click.Group:
    """A subgroup of `medusa`, with the common options."""

    @click.group(name, cls=LazyGroup, entries=entries, help=description)
    @common_options
    def command(**_options: object) -> None:
        pass

    return command
