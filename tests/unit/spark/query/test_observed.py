from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import SchemaId, StreamName
from pipeline.markers.positions import InputPartition
from pipeline.planner.planner import plan
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.metrics import BatchMetrics
from pipeline.spark.query.observed import Observations, observed
from schemas import wire
from tests.unit.planner.networks import OWNER, column, external, network, python
from tests.unit.spark.support import SCHEMA, fragment, lowering_context

TOLLS, SIGHTINGS = StreamName("tolls"), StreamName("sightings")


def notifications(*, redrive: bool = True) -> Lowered:
    """A join of two inputs, each with two partitions."""
    planned = fragment("toll_notifications")
    return lower(planned, lowering_context(planned, redrive=redrive))


def called() -> Lowered:
    """A Python box without state."""
    cars = replace(external("cars", column("car")), schema_json=SCHEMA)
    planned = plan(network((cars,), (python("rated", cars),)), OWNER).fragments[0]
    return lower(planned, lowering_context(planned))


def at(lowered: Lowered, stream: StreamName, partition: int) -> InputPartition:
    """A partition of an input's own topic."""
    return InputPartition(stream, lowered.source(stream).data.topic, partition)


def test_nothing_observed_is_nothing_read() -> None:
    """A batch that event time alone has started."""
    assert observed({}, notifications()) == BatchMetrics(0, 0, (), {})


def test_records_of_all_inputs_and_failures_of_all_paths_are_counted() -> None:
    """A record that a path refuses is counted there, and unfit ones at their source."""
    lowered = notifications()
    first, second = (path.name for path in lowered.paths)
    found: Observations = {
        "source_tolls": {"rows": 5, "bad": 1, "skipped": 2},
        "source_sightings": {"rows": 7, "bad": 0},
        f"path_{first}": {"bad": 3},
        f"path_{second}": {"bad": 4},
        "judged": {"rows": 99, "bad": 99},
    }
    metrics = observed(found, lowered)
    assert (metrics.records, metrics.bad, metrics.skipped) == (12, 8, 2)


def test_event_times_are_those_of_own_partitions() -> None:
    """A partition without a valid record has none; one of another source is another."""
    lowered = notifications(redrive=False)
    found = {"source_tolls": {"partition_1": 9}, "source_sightings": {"partition_0": 5}}
    assert observed(found, lowered).largest == {
        at(lowered, TOLLS, 1): 9,
        at(lowered, SIGHTINGS, 0): 5,
    }


@given(own=st.none() | st.integers(1, 9), again=st.none() | st.integers(1, 9))
def test_redriven_records_may_be_of_any_partition(own: int | None, again: int | None) -> None:
    """Their event time counts for each partition of the redrive topic, and for no own one."""
    lowered = notifications()
    values = {"partition_0": own, "redriven": again}
    found = {"source_tolls": {name: value for name, value in values.items() if value is not None}}
    largest = observed(found, lowered).largest
    assert largest.get(at(lowered, TOLLS, 0)) == own
    times = {one.partition: ms for one, ms in largest.items() if one.topic.endswith("redrive")}
    assert times == ({} if again is None else {0: again, 1: again})


def test_unknown_schemas_are_read_from_prefixes() -> None:
    """One of each input, each once; an expression of Spark writes them as hexadecimal digits."""
    lowered = notifications()
    row = {"unknown": wire.prefix(SchemaId(8)).hex().upper()}
    assert observed({"source_tolls": row, "source_sightings": row}, lowered).unknown == (8,)


def test_checksums_are_those_of_paths_with_functions() -> None:
    """Also when nothing failed: an inspection has to find nothing, too."""
    (path,) = called().paths
    assert observed({}, called()).failed == {path.name: 0}
    row = {f"path_{path.name}": {"bad": 1, "failed": 77}}
    assert observed(row, called()).failed == {path.name: 77}
    assert observed(row, notifications()).failed == {}
