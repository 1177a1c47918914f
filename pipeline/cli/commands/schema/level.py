"""`medusa schema level`: compatibility levels."""

import click

from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.commands.schema.scopes import apply, as_data, as_text, parse_request
from pipeline.cli.completing import subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.event_log.event import EventKind
from schemas.compatibility import Level


@click.command("level")
@click.argument(
    "arguments",
    type=name_of_subject,
    shell_complete=subjects,
    nargs=-1,
    metavar="[SUBJECT] [LEVEL]",
)
@click.option("--general", is_flag=True, help="Where a subject has no level of its own.")
@click.option("--reset", is_flag=True, help="Remove the subject's own setting.")
@with_registry
def command(session: Session, arguments: tuple[str, ...], *, general: bool, reset: bool) -> None:
    """Show the compatibility level in force for SUBJECT, or in general, or set it to LEVEL.

    LEVEL is NONE, BACKWARD, FORWARD or FULL, or one of the last three with _TRANSITIVE, which
    compares with all versions instead of the newest. --reset removes the subject's own settings.

    \b
    Examples:
      medusa schema level
      medusa schema level car-sightings-value
      medusa schema level car-sightings-value FULL
      medusa schema level --general BACKWARD_TRANSITIVE
      medusa schema level car-sightings-value --reset
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    request = parse_request(arguments, [one.value for one in Level], general=general, reset=reset)
    scope = request.scope
    with session.connect() as connections:
        admin = connections.registry.admin
        own = admin.own_level(scope)
        changed = apply(
            request,
            own.value if own else None,
            lambda word: admin.set_level(scope, Level(word)),
            lambda: admin.forget_config(scope),
        )
        own = admin.own_level(scope)
        if changed:
            text = own.value if own else "none of its own"
            session.log_event(
                connections, EventKind.SCHEMA_SETTING, subject=scope or "all", level=text
            )
        force = admin.level_in_force(scope) if scope is not None else own or Level.BACKWARD
    own_word = own.value if own else None
    session.printer.show(
        as_data(request, "level", own_word, force.value, changed=changed),
        as_text(request, "level", own_word, force.value, changed=changed),
    )
