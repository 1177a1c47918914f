"""Options common to all verbs, after the verb or before it, as in `medusa -o json status`.

Every call imports this module, `--help` too, so it imports nothing that is slow.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from pipeline.cli.output import Format
from pipeline.cli.project import from_assignments

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT = Format.TABLE
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "-o",
        "--output",
        type=click.Choice([f.value for f in Format]),
        show_default=_DEFAULT.value,
        help="How to print data.",
    ),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set one setting for this call; may be repeated. `medusa config show` lists them.",
    ),
    click.option(
        "--data",
        metavar="FOLDER",
        type=click.Path(),
        help="Where logs, checkpoints and the embedded stack are; like --set data=FOLDER.",
    ),
    click.option("--no-color", is_flag=True, help="No colour; NO_COLOR does the same."),
    click.option("-v", "--verbose", is_flag=True, help="Print more details on stderr."),
)
_NAMES = ("output", "assignments", "data", "no_color", "verbose")


@dataclass(frozen=True, slots=True)
class Common:
    """Values of the common options of a call.

    Args:
        output: the format of printed data.
        assignments: settings, as `NAME=VALUE`; a later one overrides an earlier one.
        data: the data folder; None: that of the settings.
        no_color: whether colour is switched off.
        verbose: whether to print more details on stderr.
    """

    output: Format = _DEFAULT
    assignments: tuple[str, ...] = ()
    data: str | None = None
    no_color: bool = False
    verbose: bool = False

    def updated(self, values: Mapping[str, Any]) -> "Common":
        """These values, overridden by those of a later part of the command line."""
        output = values.get("output")
        return Common(
            Format(output) if output else self.output,
            (*self.assignments, *(values.get("assignments") or ())),
            values.get("data") or self.data,
            self.no_color or bool(values.get("no_color")),
            self.verbose or bool(values.get("verbose")),
        )


def common_options(function: F) -> F:
    """Decorator that adds the common options; the function takes their values by name."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


def common_of(context: click.Context) -> Common:
    """The common options of a call, from before and after its verb."""
    found = Common()
    for one in reversed(tuple(_with_parents(context))):
        found = found.updated(one.params)
    return found


def flags_of(common: Common) -> Mapping[str, str]:
    """The settings from `--set` and `--data`.

    Raises:
        UsageError: a setting does not exist or cannot have the value.
    """
    found = from_assignments(common.assignments)
    return {**found, "data": str(Path(common.data).absolute())} if common.data else found


def without_common(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a verb's own options."""
    return {name: value for name, value in values.items() if name not in _NAMES}


def _with_parents(context: click.Context) -> Iterator[click.Context]:
    found: click.Context | None = context
    while found is not None:
        yield found
        found = found.parent
