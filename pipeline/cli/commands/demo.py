"""`medusa demo`: the toll network on generated traffic, its results verified by a reference."""

import click

from pipeline.cli.cut_options import cut_options
from pipeline.cli.example_run import ExampleOptions, run_example
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.errors import UsageError
from pipeline.examples.cut import Cut
from pipeline.examples.stage import fed
from pipeline.examples.tolls import TOLLS


@click.command("demo")
@click.option(
    "--seconds",
    type=click.FloatRange(min=15, max=3_600),
    default=60,
    envvar="DEMO_SECONDS",
    show_default=True,
    show_envvar=True,
    help="How long to feed; windows are 10 seconds long.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=100, max=5_000),
    default=500,
    show_default=True,
    help="Car sightings a second.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the made-up traffic.")
@click.option(
    "--nodes",
    type=click.IntRange(min=1, max=2),
    default=1,
    envvar="DEMO_NODES",
    show_default=True,
    show_envvar=True,
    help="With 2, a fragment moves in the middle, and one node is killed later.",
)
@click.option("--keep", is_flag=True, help="Keep the folder with logs and data.")
@cut_options
@with_session
def command(
    session: Session,
    *,
    seconds: float,
    rate: float,
    seed: int,
    nodes: int,
    keep: bool,
    cut: Cut | None,
) -> None:
    """Run the toll network on made-up traffic and check every result.

    Starts servers and a node of its own in a temporary folder and on free ports, deploys the
    network of `medusa init tolls` with windows of 10 seconds, and feeds it from an ordinary Kafka
    producer. At the end every result is compared with one that was computed record by record, and
    everything that was started is stopped. Exit code 1 if a result is missing, wrong or one too
    many, or if there is a dead letter.

    \b
    Examples:
      medusa demo
      DEMO_SECONDS=120 medusa demo --rate 1000
      medusa demo --nodes 2
      medusa demo --cut partition --for 20s
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if cut is not None and nodes > 1:
        raise UsageError("--cut is for one node, --nodes 1")
    feed = fed(seconds, seed, (f"--rate={rate:g}",), cut)
    run_example(session, ExampleOptions(TOLLS, feed, "demo", keep, nodes, cut))
