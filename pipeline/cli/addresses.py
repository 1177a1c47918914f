"""Ports of the embedded stack, from the addresses in the settings. Pure."""

from urllib.parse import urlsplit

from pipeline.errors import RefusedError

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def port_of(setting: str, address: str) -> int:
    """The port of a single loopback address.

    Args:
        setting: the setting's name, for the error.
        address: `host:port`, optionally with a scheme and a path.

    Raises:
        RefusedError: it is not a single address on this machine.

    >>> port_of("zookeeper.connect", "127.0.0.1:2181/medusa")
    2181
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host not in _LOOPBACK or port is None:
        raise RefusedError(
            f"`up` starts servers on this machine only, and {setting} is {address}",
            place="settings",
            hint="start servers elsewhere yourself; `medusa node start` runs a node on them.",
        )
    return port
