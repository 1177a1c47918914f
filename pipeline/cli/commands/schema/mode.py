"""`medusa schema mode`: modes of subjects: read-write, read-only, import."""

import click

from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.commands.schema.scopes import apply, as_data, as_text, parse_request
from pipeline.cli.completing import subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.event_log.event import EventKind
from schemas.registry.config import Mode


@click.command("mode")
@click.argument(
    "arguments", type=name_of_subject, shell_complete=subjects, nargs=-1, metavar="[SUBJECT] [MODE]"
)
@click.option("--general", is_flag=True, help="Where a subject has no mode of its own.")
@click.option("--reset", is_flag=True, help="Remove the subject's own mode.")
@with_registry
def command(session: Session, arguments: tuple[str, ...], *, general: bool, reset: bool) -> None:
    """Show the mode in force for SUBJECT, or in general, or set it to MODE.

    MODE is READWRITE, READONLY (nothing may be registered or deleted), or IMPORT (only with an id,
    as `medusa schema import` does, which sets and resets the mode itself).

    \b
    Examples:
      medusa schema mode
      medusa schema mode car-sightings-value READONLY
      medusa schema mode --general READWRITE
      medusa schema mode car-sightings-value --reset
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    request = parse_request(arguments, [one.value for one in Mode], general=general, reset=reset)
    scope = request.scope
    with session.connect() as connections:
        admin = connections.registry.admin
        own = admin.own_mode(scope)
        changed = apply(
            request,
            own.value if own else None,
            lambda word: admin.set_mode(scope, Mode(word)),
            lambda: admin.forget_mode(scope or ""),
        )
        own = admin.own_mode(scope)
        if changed:
            text = own.value if own else "none of its own"
            session.log_event(
                connections, EventKind.SCHEMA_SETTING, subject=scope or "all", mode=text
            )
        force = admin.mode_in_force(scope) if scope is not None else own or Mode.READWRITE
    own_word = own.value if own else None
    session.printer.show(
        as_data(request, "mode", own_word, force.value, changed=changed),
        as_text(request, "mode", own_word, force.value, changed=changed),
    )
