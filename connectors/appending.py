"""Sinks that only append: what was stored is never changed. Pure."""

from connectors.sink import Batch, Refuse, RefusedChange, Removal, Result
from schemas.json_value import JsonObject

REMOVAL = "removal"


def rows_of(batch: Batch, refuse: Refuse) -> list[JsonObject]:
    """The rows of a batch, corrections among them; its removals are refused."""
    removals = [one for one in batch.changes if isinstance(one, Removal)]
    if removals:
        message = "a result was removed, and what is stored is never changed"
        refuse([RefusedChange(one, REMOVAL, f"{message}: {one.id}") for one in removals])
    return [one.fields for one in batch.changes if isinstance(one, Result)]
