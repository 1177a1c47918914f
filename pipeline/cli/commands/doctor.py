"""`medusa doctor`: health checks of the machine, its connections and the participant's topics."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from pipeline.cli.options import document_options, with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.deploy.documents import plan_document, read_document
from pipeline.doctor.checks import exit_code, findings
from pipeline.doctor.facts import Finding
from pipeline.doctor.probes import Probes
from pipeline.planner.plan import Plan
from pipeline.settings import Settings
from schemas.client import RegistryClient
from schemas.json_value import JsonObject


@click.command("doctor")
@document_options
@with_session
def command(session: Session, file: str | None) -> None:
    """Check this machine, each connection, version, right and topic; print what to do.

    Checks the deployed networks of this participant, and the document of this project. Changes
    nothing. The exit code is 0 if nothing is wrong, 69 if a server does not answer or this machine
    lacks something, else 65.

    \b
    Examples:
      medusa doctor
      medusa doctor network.yaml
      medusa doctor -o json | jq '.findings[] | select(.verdict != "good")'
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    probes = Probes(session.settings, _spark_probe(session.settings))
    observed = probes.observe(lambda registry: _project_plan(session, file, registry))
    found = findings(observed)
    rows = [_row(finding) for finding in found]
    columns = ("what", "verdict", "message", "place", "hint")
    table = Table(columns, tuple(tuple(str(row[c]) for c in columns) for row in rows))
    session.printer.show({"findings": rows}, table)
    code = exit_code(found)
    if code:
        sys.exit(code)


def _spark_probe(settings: Settings) -> Callable[[], str] | None:
    """Probe of a Spark cluster's master; None if Spark runs on this machine."""
    if settings.spark_master.startswith("local"):
        return None
    # PySpark takes a second to import, and most installations do not use a Spark cluster.
    from pipeline.spark.session.master import look_at_master  # noqa: PLC0415

    return partial(look_at_master, settings)


def _row(finding: Finding) -> JsonObject:
    return {
        "what": finding.what,
        "verdict": finding.verdict.value,
        "message": finding.message,
        "place": finding.place,
        "hint": finding.hint,
    }


def _project_plan(session: Session, file: str | None, registry: RegistryClient) -> Plan | None:
    """Plan of the project's document; None if the project has none."""
    path = session.project.document(file)
    if file is None and not Path(path).is_file():
        return None

    def newest(subject: str) -> str | None:
        found = registry.latest(subject)
        return found.text if found else None

    document = read_document(path, newest)
    return plan_document(document, session.participant)
