"""`medusa contract check`: whether a contract permits to send a fragment."""

import click

from pipeline import durations
from pipeline.cli.completing import parts
from pipeline.cli.contracts import negotiating, trust_option
from pipeline.cli.load_view import load_data
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.terms import Privacy
from pipeline.deploy.pause import parse_target
from pipeline.errors import UsageError
from pipeline.ids import FragmentId
from pipeline.operations.contracts.checking import checked
from pipeline.operations.contracts.tasks import Needs
from schemas.json_value import JsonObject

_CLASSES = tuple(one.name.lower() for one in Privacy)


@click.command("check")
@click.argument("name")
@click.argument("fragment", metavar="NETWORK.FRAGMENT", shell_complete=parts)
@click.option(
    "--privacy",
    type=click.Choice(_CLASSES),
    default=_CLASSES[-1],
    show_default=True,
    help="How sensitive the data are that it reads.",
)
@click.option("--availability", metavar="TIME", help="The longest interruption that it tolerates.")
@click.option("--delay", metavar="TIME", help="The longest delay of its results that it tolerates.")
@trust_option
@with_session
def command(
    session: Session,
    name: str,
    fragment: str,
    privacy: str,
    availability: str | None,
    delay: str | None,
    *,
    yes: bool,
) -> None:
    """Check whether contract NAME permits that the partner runs NETWORK.FRAGMENT.

    Compared are the terms in force now with its boxes, its placement, its state_limit and the load
    that its node has metered in the last minute. Each term that forbids it is named, and the exit
    code is 65. Nothing is moved.

    \b
    Examples:
      medusa contract check load-2027 intrusion.scan --privacy public
      medusa contract check load-2027 intrusion.scan --availability 30s --delay 5s
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    network, part = parse_target(fragment, session.participant)
    if part is None:
        raise UsageError("write the fragment as NETWORK.FRAGMENT")
    needs = Needs(Privacy[privacy.upper()], _milliseconds(availability), _milliseconds(delay))
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        contract, signer, _ = contracts.read(contracts.find(name))
        load = checked(
            contract, FragmentId(network, part), needs, connections.catalog, signer.now_ms
        )
    text = f"{contract.contract} permits {fragment}: nothing in its terms forbids it"
    data: JsonObject = {
        "contract": contract.contract,
        "fragment": fragment,
        "permitted": True,
        "load": load_data(load),
    }
    session.printer.show(data, text)


def _milliseconds(text: str | None) -> int | None:
    try:
        return None if text is None else durations.parse(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no duration: {error}") from error
