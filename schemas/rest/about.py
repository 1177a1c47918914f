"""What the server says of itself, and what it has none of. Pure."""

from typing import Final, NoReturn

from schemas.json_value import Json
from schemas.registry.refused import NoAssociationError
from schemas.registry.state import State
from schemas.rest.call import Call

CLUSTER: Final = "schema-registry"
SPOKEN: Final = "8.2.0"
"""The version of Confluent's registry whose interface is served: what clients decide by."""


def root(_: State, __: Call) -> Json:
    """That it is there."""
    return {}


def cluster_id(_: State, __: Call) -> Json:
    """Which cluster it belongs to; its schemas do not lie in Kafka, so no Kafka is named."""
    return {"scope": {"path": [], "clusters": {"schema-registry-cluster": CLUSTER}}}


def version(_: State, __: Call) -> Json:
    """The version of the interface."""
    return {"version": SPOKEN, "commitId": "medusa"}


def no_association(_: State, call: Call) -> NoReturn:
    """Clients that ask for the subject of a topic take 404 for "by the usual rule"."""
    raise NoAssociationError(call.path["resource"])
