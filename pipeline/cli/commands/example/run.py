"""`medusa example run`: an example on generated input, its results verified by a reference."""

import click

from pipeline.cli.example_run import ExampleOptions, run_example
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.stage import Feed


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
@with_session
def command(session: Session, *, name: str, seconds: float, seed: int, keep: bool) -> None:
    """Run an example on made-up input and check every result.

    NAME is one of `medusa example list`. Starts servers and a node of its own in a temporary folder
    and on free ports, deploys the network of `medusa init NAME`, and feeds it from the project's
    own producer, an ordinary Kafka program. Then every result is compared with one that was
    computed record by record from the input topics, without the records of dead letters; and
    everything that was started is stopped.

    Exit code 1 if a result is missing, wrong or one too many, if a dead letter is about a good
    record that came in time, or if nothing was due.

    \b
    Examples:
      medusa example run tolls
      medusa example run tolls --seconds 60 -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    example = EXAMPLES[name]
    run_example(session, ExampleOptions(example, Feed(seconds, seed, example.feed), name, keep))
