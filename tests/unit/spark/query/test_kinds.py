"""Stateless and stateful queries behind one interface."""

from dataclasses import replace

import pyarrow as pa
import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.network.model import Box
from pipeline.planner.planner import plan
from pipeline.spark.query import hidden, stateful, stateless
from pipeline.spark.query.counted import COLUMNS
from pipeline.spark.query.kinds import kind_of
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.observed import Observations
from tests.unit.planner.networks import OWNER, column, external, filtered, network, python
from tests.unit.spark.support import SCHEMA, fragment, lowering_context

CARS = replace(external("cars", column("car")), schema_json=SCHEMA)
ROWS = pa.table(
    {
        "reason": pa.array([None], pa.string()),
        "timestamp_ms": pa.array([5], pa.int64()),
        "value": pa.array([b"v"], pa.binary()),
        **{name: pa.array([0], pa.int32()) for name in COLUMNS},
    }
)


def lowered(kind: str) -> Lowered:
    """A filter, a Python box, or an aggregate."""
    boxes: dict[str, Box] = {
        "filter": filtered("moving", CARS, "`car` > 'a'"),
        "python": python("rated", CARS),
    }
    if kind not in boxes:
        planned = fragment("tolls")
    else:
        planned = plan(network((CARS,), (boxes[kind],)), OWNER).fragments[0]
    return lower(planned, lowering_context(planned))


def observations() -> Observations:
    """What Spark has observed of two records."""
    return {"source_cars": {"rows": 2}, "source_sightings": {"rows": 2}}


def test_the_kind_of_a_query_depends_on_its_state() -> None:
    """Not on its functions."""
    kinds = [kind_of(lowered(kind)) for kind in ("filter", "python", "aggregate")]
    assert kinds == [stateless, stateless, stateful]


@pytest.mark.parametrize(("kind", "records"), [("filter", 1), ("python", 2), ("aggregate", 2)])
def test_metrics_come_from_the_rows_or_from_what_was_observed(kind: str, records: int) -> None:
    """Only rows of a query without state and functions are records."""
    of = lowered(kind)
    assert kind_of(of).metrics(of, ROWS, observations).records == records


def test_a_query_that_is_counted_from_its_rows_needs_them() -> None:
    """Others have metrics without."""
    of = lowered("filter")
    with pytest.raises(BrokenInvariantError, match="counted from its rows"):
        kind_of(of).metrics(of, None, observations)
    for kind in ("python", "aggregate"):
        of = lowered(kind)
        assert kind_of(of).metrics(of, None, observations).records == 2


@pytest.mark.parametrize(
    ("kind", "column_of_time"),
    [
        ("filter", hidden.EVENT_MS),
        ("python", hidden.EVENT_TIME),
        ("aggregate", hidden.EVENT_TIME),
    ],
)
def test_a_first_step_has_the_event_time_of_a_record(kind: str, column_of_time: str) -> None:
    """In milliseconds, whatever column the kind keeps."""
    of = lowered(kind)
    assert column_of_time in kind_of(of).event_ms(of)
