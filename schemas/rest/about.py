"""Endpoints about the server: cluster id, version, the absence of associations. Pure."""

from typing import Final, NoReturn

from schemas.json_value import Json
from schemas.registry.refused import NoAssociationError
from schemas.registry.state import State
from schemas.rest.call import Call

CLUSTER: Final = "schema-registry"
INTERFACE_VERSION: Final = "8.2.0"
"""The version of Confluent's registry with the same interface, which clients evaluate."""


def root(_: State, __: Call) -> Json:
    """An empty object, as a liveness check."""
    return {}


def cluster_id(_: State, __: Call) -> Json:
    """The cluster id of the registry; its schemas are not in Kafka, so it has no Kafka cluster."""
    return {"scope": {"path": [], "clusters": {"schema-registry-cluster": CLUSTER}}}


def version(_: State, __: Call) -> Json:
    """The version of the interface."""
    return {"version": INTERFACE_VERSION, "commitId": "medusa"}


def no_association(_: State, call: Call) -> NoReturn:
    """Answer 404: clients that look up the subject of a topic then use the default naming."""
    raise NoAssociationError(call.path["resource"])
