"""Tentative results through two fragments: a partition stays away, and comes back."""

import time
from collections.abc import Iterator

import pytest

from brokers.kafka.producer import PlainProducer
from pipeline.tentative.records import DoneMark, Undo
from tests.system.support import Installation
from tests.system.tentative import SENSORS, Chain, ChainOfRows, LongChain

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(500)]

AWAY_S = 20.0
BOUND_S = 4.0
AFTER_MS = 4_000
"""Totals with later event times contain no count of a reading before the cut."""


@pytest.fixture
def producer(medusa: Installation) -> Iterator[PlainProducer]:
    """Sends readings."""
    producer = PlainProducer(medusa.stack.kafka_bootstrap_servers, 10)
    yield producer
    producer.close()


def test_tentative_results_pass_through_a_chain_and_are_corrected_once(
    medusa: Installation, producer: PlainProducer
) -> None:
    """The waits of both overlap; stable results are exact at the end, and each one is settled."""
    chain = Chain(medusa, producer, "chained")
    chain.run(lambda: bool(medusa.records(chain.topic)), "there are stable results")
    begun_s, cut_ms = time.monotonic(), int(time.time() * 1000)
    inner_s: list[float] = []
    last_s: list[float] = []

    def is_enough() -> bool:
        if not inner_s and chain.inner_ids(tentative=True):
            inner_s.append(time.monotonic())
        if not last_s and chain.results(cut_ms + AFTER_MS):
            last_s.append(time.monotonic())
        return time.monotonic() > begun_s + AWAY_S and len(chain.results(cut_ms + AFTER_MS)) > 2

    chain.run(is_enough, "there are tentative totals", away=1)
    assert last_s[0] - inner_s[0] < BOUND_S, "the totals do not wait for another bound"
    found = medusa.decode([one.value for one in chain.results(cut_ms + AFTER_MS)])
    assert {row["sensor"] for row in found} == {SENSORS[0]}
    chain.run(lambda: chain.is_done, "all tentative results are settled")
    assert chain.kept == []
    chain.check()
    assert set(chain.inner_ids(tentative=False).values()) == {1}, "each count is stable once"


def test_a_row_has_the_id_of_the_result_that_it_was(
    medusa: Installation, producer: PlainProducer
) -> None:
    """Tentative or stable: so the results of both have one id, wherever their records are."""
    chain = ChainOfRows(medusa, producer, "rows")
    chain.run(lambda: bool(medusa.records(chain.topic)), "there are stable results")
    begun_s, cut_ms = time.monotonic(), int(time.time() * 1000)
    chain.run(
        lambda: time.monotonic() > begun_s + AWAY_S and len(chain.results(cut_ms + AFTER_MS)) > 2,
        "there are tentative rows",
        away=1,
    )
    chain.run(lambda: chain.is_done, "all tentative results are settled")
    assert chain.settled_by_id
    chain.check()


def test_rows_and_boxes_without_state_pass_tentative_results_on(
    medusa: Installation, producer: PlainProducer
) -> None:
    """Four fragments: each settles what it has published, and stable results are exact."""
    chain = LongChain(medusa, producer, "long")
    chain.run(lambda: bool(medusa.records(chain.topic)), "there are stable results")
    begun_s, cut_ms = time.monotonic(), int(time.time() * 1000)
    chain.run(
        lambda: time.monotonic() > begun_s + AWAY_S and len(chain.results(cut_ms + AFTER_MS)) > 2,
        "there are tentative totals",
        away=1,
    )
    found = medusa.decode([one.value for one in chain.results(cut_ms + AFTER_MS)])
    assert {row["sensor"] for row in found} == {SENSORS[0]}
    chain.run(lambda: chain.is_done, "all tentative totals are settled")
    chain.run(lambda: isinstance(chain.passed[-1], DoneMark), "so is what was passed on")
    chain.check()
    stable, passed = chain.inner_ids(tentative=False), chain.inner_ids(tentative=True)
    assert set(stable.values()) == {1}, "each row is stable once"
    undone = {one.id for one in chain.passed if isinstance(one, Undo)}
    assert passed.keys() == (passed.keys() & stable.keys()) | undone
    assert not undone & stable.keys()
