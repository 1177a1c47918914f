"""Random id of a network's life."""

import secrets

from pipeline.ids import NetworkLife

_BYTES = 8


def random_life() -> NetworkLife:
    """A new random id: 16 hex digits."""
    return NetworkLife(secrets.token_hex(_BYTES))
