from dataclasses import asdict
from importlib import resources
from pathlib import Path

import pytest

from pipeline.availability import Availability, Policy
from pipeline.deploy.documents import read_document
from pipeline.errors import BrokenInvariantError
from pipeline.examples.prices import PRICES
from pipeline.examples.tolls import (
    BOUND_MS,
    TOLLS,
    dispatch_text,
    due_dispatches,
    due_notifications,
    due_tolls,
    notification_text,
    rules_of,
    toll_text,
    with_bound,
    with_short_windows,
)
from pipeline.ids import ParticipantId
from pipeline.network.model import ExternalStream, Network, Silence
from pipeline.planner import planner
from pipeline.reference.inputs import Due, InputRecord, Inputs, Place, Refusal
from pipeline.reference.tolls import Rules, Sighting

PROJECT = Path(str(resources.files("pipeline.projects") / "tolls"))


def load(folder: Path, text: str) -> Network:
    """A document next to the project's schemas."""
    (folder / "schemas").mkdir()
    schema = (PROJECT / "schemas" / "sighting.avsc").read_text(encoding="utf-8")
    (folder / "schemas" / "sighting.avsc").write_text(schema, encoding="utf-8")
    (folder / "network.yaml").write_text(text, encoding="utf-8")
    return read_document(folder / "network.yaml", lambda _: None).network


def toll_document() -> str:
    """The document that `medusa init tolls` writes."""
    return (PROJECT / "network.yaml").read_text(encoding="utf-8")


def test_the_projects_own_document_has_windows_of_a_minute(tmp_path: Path) -> None:
    """The reference's times are read from the checked network, bounds included."""
    rules = rules_of(load(tmp_path, toll_document()))
    assert rules == Rules(window_ms=60_000, valid_ms=60_000, reach_ms=300_000)


def test_the_demo_shortens_the_windows_and_dependent_times(tmp_path: Path) -> None:
    """One line of the document defines the window and the validity of its toll."""
    rules = rules_of(load(tmp_path, with_short_windows(toll_document())))
    assert rules == Rules(window_ms=10_000, valid_ms=10_000, reach_ms=300_000)


def test_a_document_without_its_window_line_is_refused() -> None:
    """If the project's document changes, the demo fails instead of running something else."""
    with pytest.raises(BrokenInvariantError, match="sets its window 0 times"):
        with_short_windows("network: tolls\n")


def test_the_variant_has_a_bound_everywhere_and_tolls_as_an_output(tmp_path: Path) -> None:
    """So no fragment takes a silent input for idle, whose records would be late afterwards."""
    network = load(tmp_path, with_bound(toll_document()))
    fragments = planner.plan(network, ParticipantId("local")).fragments
    assert {f.availability for f in fragments} == {Availability(BOUND_MS, Policy.PROCESS)}
    assert {f.output.topic for f in fragments if f.may_be_tentative} == {
        "toll-notifications",
        "tolls",
    }
    sources = [source for f in fragments for source in f.inputs]
    silences = {one.silence for one in sources if isinstance(one, ExternalStream)}
    assert silences == {Silence.MISSING}
    assert rules_of(network).window_ms == 10_000


def test_the_variant_is_checked_up_to_where_event_time_stops(tmp_path: Path) -> None:
    """A partition that is silent is missing: the lateness of the stream is never passed."""
    (sightings,) = load(tmp_path, with_bound(toll_document())).streams
    assert TOLLS.with_bound.settle_ms <= -sightings.lateness_ms - 1_500
    assert [one.box for one in TOLLS.with_bound.results] == [
        "tolls",
        "toll_notifications",
        "tow_dispatch",
    ]
    assert PRICES.with_bound is PRICES


def test_a_document_without_a_line_of_outputs_has_no_variant() -> None:
    """As for its window."""
    with pytest.raises(BrokenInvariantError, match="0 lines of outputs"):
        with_bound("window: 1m\n")


def test_another_network_has_no_reference(tmp_path: Path) -> None:
    """Rules come only from a network with the toll network's boxes."""
    document = toll_document().replace("tow_dispatch", "dispatch")
    with pytest.raises(BrokenInvariantError, match="not the one the reference knows"):
        rules_of(load(tmp_path, document))


JAM = [Sighting(f"car-{n}", "car", "A1", 2, "A1/2.5", 20.0, 1_000 + n) for n in range(60)]
SEEN = (
    *JAM,
    Sighting("car-0", "car", "A1", 2, "A1/2.6", 18.5, 12_000),
    Sighting("car-1", "car", "A1", 2, "A1/2.7", 0.0, 13_000),
    Sighting("tow_truck-0", "tow_truck", "A1", 2, "A1/2.7", 0.0, 14_000),
)
"""A jam, a car that meets its toll, and a stopped car with a tow truck."""


def inputs(*refusals: Refusal) -> Inputs:
    """The sightings, as records of the topic."""
    given = (InputRecord(Place("car-sightings", 0, n), asdict(seen)) for n, seen in enumerate(SEEN))
    return Inputs({"sightings": tuple(given)}, refusals)


def test_expected_results_of_a_jam(tmp_path: Path) -> None:
    """One car is charged its toll, one is towed, each at its event time."""
    network = load(tmp_path, with_short_windows(toll_document()))
    assert list(due_notifications(inputs(), network)) == [Due(("car-0", 200.0, 2, 12_000), 12_000)]
    first, *_ = due_tolls(inputs(), network)
    assert first == Due(("A1", 2, 10_000, 200.0), 10_000)
    assert list(due_dispatches(inputs(), network)) == [
        Due(("A1/2.7", "car-1", "tow_truck-0", 13_000, 14_000), 14_000)
    ]


def test_each_fragment_computes_without_the_records_it_refused(tmp_path: Path) -> None:
    """A car that was late for the toll is still charged one, and vice versa."""
    network = load(tmp_path, with_short_windows(toll_document()))
    first = Place("car-sightings", 0, 1)
    late = inputs(Refusal("tolls", first, "", "late", "late"))
    assert [due.row[1] for due in due_notifications(late, network)] == [162.0]
    refused = inputs(
        Refusal("toll_notifications", Place("car-sightings", 0, 60), "", "late", "late")
    )
    assert list(due_notifications(refused, network)) == []


def test_results_are_displayed_as_text() -> None:
    """With the time of day."""
    assert notification_text(("car-1", 200.0, 2, 12_345)) == (
        "00:00:12  car-1 pays 200.0 on segment 2"
    )
    assert toll_text(("A1", 2, 20_000, 200.0)) == "00:00:20  A1, segment 2: 200.0"
    assert dispatch_text(("A1/2.7", "a", "truck", 13_000, 0)) == "00:00:13  truck tows a at A1/2.7"
