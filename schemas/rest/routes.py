"""Routing table of the REST API: one line for each method and path. Pure.

The kind of a route determines how it is executed: `QUICK` reads, in the event loop; `SLOW` reads,
too, but may parse and compare schemas, so it runs in a thread; `CHANGE` decides, and may write.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from schemas.registry.state import Decided, State
from schemas.rest import about, compatibility_checks, configs_and_modes, schemas, subjects
from schemas.rest.call import Answer, Call
from schemas.rest.errors import HttpError

Handler: TypeAlias = Callable[[State, Call], Answer | Decided[Answer]]
"""Returns the answer, or for changes the decision."""


class Kind(Enum):
    """How a handler is executed."""

    QUICK = "quick"
    SLOW = "slow"
    CHANGE = "change"


class Right(Enum):
    """The right that a request requires."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    """Register and delete schemas."""
    ADMIN = "admin"
    """Change configurations and modes."""


@dataclass(frozen=True, slots=True)
class Route:
    """One method and path.

    Args:
        parts: the segments of the path; `{name}` is a parameter.
        handler: returns the answer or decision.
    """

    method: str
    parts: tuple[str, ...]
    handler: Handler
    kind: Kind
    right: Right

    @property
    def takes_body(self) -> bool:
        """Whether the request must have a JSON object as its body."""
        return self.method in {"POST", "PUT"} and bool(self.parts)


def _routes(kind: Kind, right: Right, *lines: tuple[str, Handler]) -> list[Route]:
    made = []
    for line, handler in lines:
        method, _, path = line.partition(" ")
        made.append(Route(method, tuple(filter(None, path.split("/"))), handler, kind, right))
    return made


_VERSION: Final = "/subjects/{subject}/versions/{version}"
ROUTES: Final[Sequence[Route]] = (
    *_routes(
        Kind.QUICK,
        Right.NONE,
        ("GET /", about.root),
        ("POST /", about.root),
        ("GET /v1/metadata/id", about.cluster_id),
        ("GET /v1/metadata/version", about.version),
        ("GET /schemas/types", schemas.types),
    ),
    *_routes(
        Kind.QUICK,
        Right.READ,
        ("GET /schemas/ids/{id}", schemas.by_its_id),
        ("GET /schemas/ids/{id}/schema", schemas.text_by_id),
        ("GET /schemas/ids/{id}/subjects", schemas.subjects_of_id),
        ("GET /schemas/ids/{id}/versions", schemas.versions_of_id),
        ("GET /schemas/guids/{guid}", schemas.by_its_guid),
        ("GET /schemas/guids/{guid}/ids", schemas.ids_of_guid),
        ("GET /subjects/{subject}/versions", subjects.list_versions),
        (f"GET {_VERSION}", subjects.one_version),
        (f"GET {_VERSION}/schema", subjects.schema_of_version),
        (f"GET {_VERSION}/referencedby", subjects.referenced_by),
        ("GET /subjects/{subject}/metadata", subjects.by_metadata),
        ("GET /config", configs_and_modes.get_config),
        ("GET /config/{subject}", configs_and_modes.get_config),
        ("GET /mode", configs_and_modes.get_mode),
        ("GET /mode/{subject}", configs_and_modes.get_mode),
        ("GET /contexts", configs_and_modes.list_contexts),
        ("GET /associations/subjects/{resource}", about.no_association),
        ("GET /associations/resources/{resource}", about.no_association),
        ("GET /associations/resources/{namespace}/{resource}", about.no_association),
    ),
    *_routes(
        Kind.SLOW,
        Right.READ,
        ("GET /subjects", subjects.list_subjects),
        ("GET /schemas", subjects.list_schemas),
        ("POST /subjects/{subject}", subjects.look_up),
        ("POST /compatibility/subjects/{subject}/versions", compatibility_checks.with_all),
        (
            "POST /compatibility/subjects/{subject}/versions/{version}",
            compatibility_checks.with_version,
        ),
    ),
    *_routes(
        Kind.CHANGE,
        Right.WRITE,
        ("POST /subjects/{subject}/versions", subjects.add_version),
        ("DELETE /subjects/{subject}", subjects.remove_subject),
        (f"POST {_VERSION}/tags", subjects.retag_version),
        (f"DELETE {_VERSION}", subjects.remove_version),
    ),
    *_routes(
        Kind.CHANGE,
        Right.ADMIN,
        ("PUT /config", configs_and_modes.put_config),
        ("PUT /config/{subject}", configs_and_modes.put_config),
        ("DELETE /config", configs_and_modes.remove_config),
        ("DELETE /config/{subject}", configs_and_modes.remove_config),
        ("PUT /mode", configs_and_modes.put_mode),
        ("PUT /mode/{subject}", configs_and_modes.put_mode),
        ("DELETE /mode", configs_and_modes.remove_mode),
        ("DELETE /mode/{subject}", configs_and_modes.remove_mode),
        ("DELETE /contexts/{context}", configs_and_modes.remove_context),
    ),
)
_BY_LENGTH: Final[Mapping[int, Sequence[Route]]] = {
    length: [route for route in ROUTES if len(route.parts) == length]
    for length in {len(route.parts) for route in ROUTES}
}


def find(method: str, path: Sequence[str]) -> tuple[Route, dict[str, str]]:
    """The route of a request, and its path parameters.

    Raises:
        HttpError: 404: there is no such path; 405: not with this method.
    """
    known: list[str] = []
    for route in _BY_LENGTH.get(len(path), ()):
        pairs = list(zip(route.parts, path, strict=True))
        if all(part == given for part, given in pairs if part[0] != "{"):
            if route.method == method:
                return route, {part[1:-1]: given for part, given in pairs if part[0] == "{"}
            known.append(route.method)
    if not known:
        raise HttpError(404)
    raise HttpError(405, headers=((b"allow", ", ".join(known).encode()),))
