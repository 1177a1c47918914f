"""`medusa schema delete`: deletion of versions from the registry."""

import click

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.completing import schema_versions, subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.event_log.event import EventKind
from schemas.deletion import Doomed, delete, doomed, require_unreferred


@click.command("delete")
@click.argument("subject", type=name_of_subject, shell_complete=subjects)
@click.option(
    "--version",
    type=click.IntRange(1),
    shell_complete=schema_versions,
    help="Only this version; default: all.",
)
@click.option("--permanent", is_flag=True, help="For good, and what was deleted before too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--dry-run", is_flag=True, help="Only print what would be deleted, and its referrers."
)
@with_registry
def command(
    session: Session,
    subject: str,
    version: int | None,
    *,
    permanent: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete SUBJECT, or one version of it; it is then found only by its id.

    With --permanent the ids are deleted too: records written with them can never be decoded again,
    and it cannot be undone. What other schemas refer to is not deleted before them. Boxes that
    are deployed keep the schemas that they were deployed with.

    \b
    Examples:
      medusa schema delete car-sightings-value --dry-run
      medusa schema delete car-sightings-value --version 2 --yes
      medusa schema delete car-sightings-value --permanent
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        admin = connections.registry.admin
        found = doomed(admin, subject, version, permanent=permanent)
        if not dry_run and found:
            require_unreferred(found)
            if not yes:
                session.printer.note(_summary(subject, found, "this deletes", permanent=permanent))
                confirm(session, f"delete it{' for good' if permanent else ''}?")
            delete(admin, found, version, permanent=permanent)
            session.log_event(
                connections,
                EventKind.SCHEMA_DELETED,
                subject=subject,
                versions=",".join(str(one.use.version) for one in found),
                permanent="yes" if permanent else "no",
            )
    before = "would delete" if dry_run else "deleted"
    session.printer.show(
        {
            "subject": subject,
            "dry_run": dry_run,
            "permanent": permanent,
            "changed": bool(found) and not dry_run,
            "versions": [
                {
                    "version": one.use.version,
                    "deleted_before": one.deleted,
                    "referrers": [
                        {"subject": by.subject, "version": by.version} for by in one.referrers
                    ],
                }
                for one in found
            ],
        },
        _summary(subject, found, before, permanent=permanent),
    )


def _summary(subject: str, found: tuple[Doomed, ...], before: str, *, permanent: bool) -> str:
    if not found:
        return f"{subject}: nothing to do, it is deleted already; --permanent deletes it for good"
    numbers = ", ".join(str(one.use.version) for one in found)
    words = "version" if len(found) == 1 else "versions"
    lines = [f"{before} {words} {numbers} of {subject}{' for good' if permanent else ''}"]
    for one in found:
        lines += [f"  {by} refers to version {one.use.version}" for by in one.referrers]
    return "\n".join(lines)
