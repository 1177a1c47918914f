"""`medusa schema evolve`: changes that the compatibility level permits."""

import click

from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.completing import subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.cli.slowly import SlowProgress
from pipeline.operations.schemas.versions import fetch, require_versions
from schemas.compatibility import Level, check, is_transitive
from schemas.evolution import REQUIREMENTS, Group, Verdict, evolution, grouped
from schemas.json_value import JsonObject

_SHOWN_MAX = 4
"""Examples of each kind of change in a table; data contain all."""


@click.command("evolve")
@click.argument("subject", type=name_of_subject, shell_complete=subjects)
@click.option(
    "--level",
    type=click.Choice([level.value for level in Level], case_sensitive=False),
    help="Judge by this level instead of the one in force.",
)
@with_registry
def command(session: Session, subject: str, level: str | None) -> None:
    """List which changes of SUBJECT's newest schema may be registered, and which not, with reasons.

    Each usual change is tried on each field of this very schema, and judged by the rules of the
    level that is in force: a field added or removed, a number widened, null allowed, and so on.
    Nothing is registered.

    \b
    Examples:
      medusa schema evolve car-sightings-value
      medusa schema evolve car-sightings-value --level FULL_TRANSITIVE -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        admin = connections.registry.admin
        numbers = require_versions(admin, subject)
        of = Level(level.upper()) if level else admin.level_in_force(subject)
        compared = numbers if is_transitive(of) else numbers[-1:]
        versions = [fetch(admin, subject, number).schema() for number in compared]
    verdicts = evolution(of, versions, SlowProgress(session.printer, session.clock))
    # Under a level that was set later, the newest version itself may not fit older ones.
    newest_breaks = check(of, versions[-1], versions[:-1])
    head = [f"{subject}, version {numbers[-1]}, level {of.value}: {REQUIREMENTS[of]}"]
    if newest_breaks:
        head.append("the newest version itself does not fit older ones:")
        head += [f"  - {reason}" for reason in newest_breaks]
    session.printer.show(
        {
            "subject": subject,
            "version": numbers[-1],
            "level": of.value,
            "in_force": level is None,
            "transitive": is_transitive(of),
            "compared_with": list(compared),
            "newest_breaks": list(newest_breaks),
            "changes": [_data(one) for one in verdicts],
        },
        "\n".join([*head, *_lines(grouped(verdicts))]),
    )


def _data(one: Verdict) -> JsonObject:
    return {
        "action": one.change.action,
        "path": one.change.path,
        "change": one.change.words,
        "allowed": one.allowed,
        "reasons": list(one.reasons),
        "other_meanings": list(one.meanings),
    }


def _lines(groups: tuple[Group, ...]) -> list[str]:
    lines: list[str] = []
    for allowed, heading in ((True, "allowed:"), (False, "not allowed:")):
        of = [group for group in groups if group.allowed == allowed]
        if of:
            lines.append(heading)
        for group in of:
            lines.append(f"  {group.action}")
            shown = group.verdicts[:_SHOWN_MAX]
            for one in shown:
                lines.append(f"    {one.change.words}")
                lines += [f"      but {meaning}" for meaning in one.meanings]
            if len(group.verdicts) > len(shown):
                lines.append(f"    … and {len(group.verdicts) - len(shown)} more")
            if not allowed:
                lines.append(f"      because {shown[0].reasons[0]}")
    return lines
