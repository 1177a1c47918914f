"""`medusa registry serve`: schema registry server."""

from pathlib import Path

import click

from pipeline.cli.node_log import log_to
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.stop_signals import StopSignals
from pipeline.names import Znodes

ZOOKEEPER_ANSWERS_WITHIN_S = 10.0


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8081, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--users",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Users and their rights; without it, every client has all rights.",
)
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Serve by TLS, with this certificate and its chain, in PEM.",
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The certificate's private key, in PEM.",
)
@with_session
def command(
    session: Session,
    host: str,
    port: int,
    users: Path | None,
    certificate: Path | None,
    key: Path | None,
) -> None:
    """Serve the schemas in ZooKeeper, until SIGTERM or Ctrl-C.

    Any number of these may serve the schemas of one ZooKeeper: all of them agree. The log is
    registry.log in the folder for logs.

    \b
    Examples:
      medusa registry serve --port 8081
      medusa registry serve --host 0.0.0.0 --users users.yaml --certificate c.pem --key k.pem
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key belong together")
    # The drivers take a third of a second to import; commands without servers do not need them.
    from brokers.zookeeper import ZooKeeperStore, zookeeper_servers  # noqa: PLC0415
    from schemas.rest.access import Access  # noqa: PLC0415
    from schemas.rest.users import read_users  # noqa: PLC0415
    from schemas.server import Certificate, Guard, RegistryServer  # noqa: PLC0415

    access = Access(read_users(users)) if users is not None else None
    proof = Certificate(certificate, key) if certificate and key else None
    stop = StopSignals()
    log = session.project.logs / "registry.log"
    with log_to(log, verbose=session.verbose), stop, session.suggesting_up():
        servers = zookeeper_servers(session.settings)
        store = ZooKeeperStore.connect(servers, ZOOKEEPER_ANSWERS_WITHIN_S)
        # The connect string contains the chroot already.
        server = RegistryServer(store, host, port, names=Znodes(""), guard=Guard(access, proof))
        try:
            server.start()
            session.printer.note(f"the schema registry listens on {server.url}; its log is {log}")
            stop.event.wait()
        finally:
            server.stop()
            store.close()
    if stop.by_hand:
        raise KeyboardInterrupt
