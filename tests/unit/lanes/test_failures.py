"""Reactions to a failure of a lane, compared with the table in `docs/failures.md`."""

import re
from collections.abc import Iterator
from pathlib import Path

from brokers.kafka_interface import (
    NoSuchTopicError,
    NotNowError,
    OffsetGoneError,
    RecordTooLargeError,
)
from brokers.versioned_store import VersionConflictError
from pipeline import errors
from pipeline.errors import MedusaError
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    NetworkId,
    NetworkName,
    ParticipantId,
    RunNumber,
    stable_lane,
)
from pipeline.lanes.dead_letter_limits import TooManyDeadLettersError
from pipeline.lanes.events import stopped_by
from pipeline.spark.run.disk import DiskFullError
from pipeline.spark.run.schema_resolver import MissingSchemaError
from pipeline.spark.run.spark_errors import DamagedCheckpointError, LostDataError

DOCUMENT = Path(__file__).parents[3] / "docs" / "failures.md"
LANE = stable_lane(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("tolls")), FragmentName("speed"))
)
KNOWN = (
    DamagedCheckpointError,
    DiskFullError,
    LostDataError,
    MissingSchemaError,
    NoSuchTopicError,
    NotNowError,
    OffsetGoneError,
    RecordTooLargeError,
    TooManyDeadLettersError,
    VersionConflictError,
)
"""Kinds that are not in `pipeline/errors.py`."""


def kinds(of: type[MedusaError] = MedusaError) -> Iterator[type[MedusaError]]:
    """All subclasses of an error."""
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


def constructed() -> tuple[type[MedusaError], ...]:
    """The errors of the table: those of `pipeline/errors.py` that a lane can raise, and others."""
    plain = (kind for kind in kinds() if kind.__module__ == errors.__name__)
    return (*(kind for kind in plain if not issubclass(kind, errors.DocumentError)), *KNOWN)


def reaction(kind: type[MedusaError]) -> str:
    """The reaction of a lane to an error of a kind, in the document's words."""
    error = kind.__new__(kind)
    MedusaError.__init__(error, "x")
    stopped = stopped_by(LANE, RunNumber(1), Epoch(1), error)
    if stopped.external:
        return "waits" if stopped.retry else "a contradiction"
    if stopped.fenced:
        return "asks"
    return "retries" if stopped.retry else "stops"


def documented() -> dict[str, str]:
    """The reactions of the document, by code."""
    rows = re.findall(
        r"^\| (`[^|]+) \| (\w+) \| [^|]+ \| [^|]+ \|$", DOCUMENT.read_text(), re.MULTILINE
    )
    return {code: what for codes, what in rows for code in re.findall(r"`([^`]+)`", codes)}


def test_the_document_contains_the_reactions() -> None:
    """Every row is of an existing kind, and every external kind has a row."""
    table, found = documented(), {kind.code: reaction(kind) for kind in constructed()}
    assert len(table) > len(KNOWN)
    assert {code: found.get(code) for code in table} == table
    assert {kind.code for kind in kinds() if kind.external} <= table.keys()
