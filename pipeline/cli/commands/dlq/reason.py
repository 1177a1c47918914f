"""The option `--reason` of several subcommands of `medusa dlq`."""

from collections.abc import Callable

import click

from pipeline.cli.options import F
from pipeline.lanes.dead_letter_reasons import Reason


def reason_option(help_text: str) -> Callable[[F], F]:
    """Add `--reason`."""
    reasons = [reason.value for reason in Reason]
    return click.option("--reason", type=click.Choice(reasons), metavar="REASON", help=help_text)
