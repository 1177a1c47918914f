"""Identity of a network's life, at random."""

import secrets

from pipeline.ids import NetworkLife

_BYTES = 8


def random_life() -> NetworkLife:
    """A life that no network has had: 16 hex digits."""
    return NetworkLife(secrets.token_hex(_BYTES))
