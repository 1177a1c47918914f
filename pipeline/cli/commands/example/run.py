"""`medusa example run`: an example on generated input, its results verified by a reference."""

import click

from pipeline.cli.cut_options import cut_options
from pipeline.cli.example_run import ExampleOptions, run_example
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.errors import UsageError
from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.cut import Cut
from pipeline.examples.stage import fed


@click.command("run")
@click.argument("name", type=click.Choice(sorted(EXAMPLES)), metavar="NAME")
@click.option(
    "--seconds",
    type=click.FloatRange(min=15, max=3_600),
    default=30,
    show_default=True,
    help="How long to feed.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the made-up input.")
@click.option("--keep", is_flag=True, help="Keep the folder with project, logs and data.")
@cut_options
@with_session
def command(
    session: Session, *, name: str, seconds: float, seed: int, keep: bool, cut: Cut | None
) -> None:
    """Run an example on made-up input and check every result.

    NAME is one of `medusa example list`. Starts servers and a node of its own in a temporary folder
    and on free ports, deploys the network of `medusa init NAME`, and feeds it from the project's
    own producer, an ordinary Kafka program. Then every result is compared with one that was
    computed record by record from the input topics, without the records of dead letters; and
    everything that was started is stopped.

    With --cut an input is cut for the time of --for in the middle, and the network has an
    availability bound: results that are held back are tentative first, and settled afterwards.

    Exit code 1 if a result is missing, wrong or one too many, if a dead letter is about a good
    record that came in time, if nothing was due, or
    if a tentative result is not settled.

    \b
    Examples:
      medusa example run tolls
      medusa example run tolls --seconds 60 -o json
      medusa example run tolls --cut partition --for 20s
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    example = EXAMPLES[name]
    if cut is not None and example.bounded is None:
        names = ", ".join(one.name for one in EXAMPLES.values() if one.bounded is not None)
        raise UsageError(f"{name} has no variant for --cut; {names} has one")
    feed = fed(seconds, seed, example.feed, cut)
    run_example(session, ExampleOptions(example, feed, name, keep, cut=cut))
