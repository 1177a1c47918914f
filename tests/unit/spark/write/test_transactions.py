from dataclasses import replace

import pytest

from pipeline.agent.events import Event
from pipeline.errors import FencedError, RefusedError, RetryError
from pipeline.lanes.result_headers import RESULT_ID, WRITTEN_TO
from tests.unit.spark.support import fragment
from tests.unit.spark.write.sink_twins import (
    NOW,
    Batch,
    ImmediateJobs,
    Log,
    Topics,
    facts,
    sink,
    stateless,
    write,
)


def test_results_of_an_output_with_corrections_have_ids() -> None:
    """As a header; the marker counts them as it counts others."""
    planned = stateless()
    planned = replace(planned, output=replace(planned.output, corrections=True))
    log, events = Log(), list[Event]()
    rows = [(b"a", NOW + 1, None), (b"b", NOW + 2, "evaluation_failed:::"), (b"c", NOW + 3, None)]
    written = sink(log, events, planned)
    write(written, Batch(facts(0, 5), rows, ids=[b"in/0/1", b"in/0/2", b"in/0/3"]))
    assert log.values["local.net.moving"] == [b"a", b"c"]
    assert log.headers["local.net.moving"] == [
        {WRITTEN_TO: b"out-1", RESULT_ID: b"in/0/1"},
        {WRITTEN_TO: b"out-1", RESULT_ID: b"in/0/3"},
    ]
    assert written.marker.totals.records_out == len(log.values["local.net.moving"])


def test_nothing_is_written_once_a_topic_is_recreated() -> None:
    """The description is requested after all was read, and compared before the commit."""
    log = Log()
    commits = ImmediateJobs()
    written = sink(log, [], commits=commits, topics=Topics(log, RefusedError("made again")))
    write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert isinstance(commits.failed, RefusedError)
    assert log.done[-2:] == [("same?", ""), ("abort", "")]


@pytest.mark.parametrize(
    ("error", "last"),
    [(RetryError("later"), "abort"), (FencedError("another"), "commit")],
)
def test_a_failed_transaction_leaves_the_last_marker(error: Exception, last: str) -> None:
    """It is aborted, unless another owner has the transactional id; no later batch is written."""
    log = Log(fails={"commit": error})
    written = sink(log, [])
    before = written.marker
    write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert log.done[-1] == (last, "")
    log.fails, done = {}, [*log.done]
    with pytest.raises(type(error)):
        write(written, Batch(facts(1, 6)))
    assert written.marker is before
    assert log.done == done


def test_an_unexpected_error_aborts_its_transaction() -> None:
    """Nothing of the batch is visible, and the marker stays."""
    log = Log(fails={"commit": KeyError("offset")})
    written = sink(log, [], fragment("tolls"))
    with pytest.raises(KeyError):
        write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert log.done[-2:] == [("commit", ""), ("abort", "")]
    assert written.marker.batch == -1


@pytest.mark.parametrize("call", ["send", "commit"])
def test_what_may_be_visible_later_is_undecided(call: str) -> None:
    """Then the batch may be written, and must not be planned anew; the next success decides."""
    log = Log(fails={call: RetryError("later")})
    written = sink(log, [], fragment("tolls"))
    assert not written.undecided
    with pytest.raises(RetryError):
        write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert written.undecided
    log.fails = {}
    write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert not written.undecided


def test_what_never_began_is_decided() -> None:
    """Nothing of it can be visible."""
    log = Log(fails={"begin": RetryError("later")})
    written = sink(log, [], fragment("tolls"))
    with pytest.raises(RetryError):
        write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert (log.done, written.undecided) == ([("begin", "")], False)
