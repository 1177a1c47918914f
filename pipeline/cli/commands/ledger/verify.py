"""`medusa ledger verify`: verification of a ledger, in the catalog or in a file."""

from pathlib import Path

import click

from pipeline.cli.contracts import negotiating, read_text, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.ledger.file import read_ledger
from pipeline.counting import counted
from pipeline.errors import RefusedError
from pipeline.operations.contracts.ledgers import Ledgers


@click.command("verify")
@click.argument("name")
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Verify this file of `medusa ledger export` instead of the copies in the catalog.",
)
@trust_option
@with_session
def command(session: Session, name: str, file: Path | None, *, yes: bool) -> None:
    """Verify the ledger of contract NAME: signatures, order, prices, sums, and both copies.

    Every changed, missing, reordered or doubled entry is named; the exit code is 65 then.

    \b
    Examples:
      medusa ledger verify load-2027
      medusa ledger verify load-2027 --file load-2027.jsonl
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        ledgers = Ledgers(contracts)
        key = contracts.find(name)
        if file is None:
            found = ledgers.read(key)
            problems, entries = found.problems, len(found.own.lines)
        else:
            ledger = read_ledger(read_text(file), str(file))
            problems = tuple(map(str, ledgers.check_file(key, ledger)))
            entries = len(ledger.lines)
    place = str(file) if file else f"ledger of {key.contract}"
    if problems:
        for problem in problems:
            session.printer.note(problem)
        raise RefusedError(
            f"{counted(len(problems), 'mistake')}; the first: {problems[0]}",
            place=place,
            hint="what is wrong owes nothing; compare with the copy of the partner.",
        )
    what = "1 entry" if entries == 1 else f"{entries:,} entries"
    session.printer.show(
        {"contract": key.contract, "entries": entries, "problems": []}, f"{place}: {what}, right"
    )
