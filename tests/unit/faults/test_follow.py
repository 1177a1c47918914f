from tests.faults.follow import Followed, notes, wrong_in
from tests.faults.history import Finding, Kind

GOES_ON = "x INFO [net.counts] goes on in the query of its follower, after batch 9"
REPAIR = "x INFO [net.counts] repaired from the log, up to batch 8 at once"
UNLIKE = (
    "x WARNING [net.counts] the follower has failed: batch 3 of incarnation 1 has another outcome"
)
ENDED = "x WARNING [net.counts] the follower has failed: it reads other partitions"
OTHER = "x INFO [net.other] repaired from the log"


def test_a_follower_that_goes_on_is_fine() -> None:
    """Whatever other fragments do, and also if another follower began from its state."""
    assert list(wrong_in(f"{OTHER}\n{ENDED}\n{GOES_ON}", "net.counts")) == []


def test_repairs_failures_and_a_query_that_has_ended_are_found() -> None:
    """Each of them alone."""
    assert len(list(wrong_in(f"{REPAIR}\n{GOES_ON}", "net.counts"))) == 1
    assert len(list(wrong_in(f"{UNLIKE}\n{GOES_ON}", "net.counts"))) == 1
    assert len(list(wrong_in(ENDED, "net.counts"))) == 1


def test_notes_are_those_of_one_fragment() -> None:
    """Without time and level."""
    assert notes(f"{OTHER}\n{REPAIR}", "net.counts") == [REPAIR.partition("] ")[2]]


def test_a_result_is_one_line() -> None:
    """With all that was counted."""
    done = Followed("window", 1_200, 40, 9, 30, 70, 55, 6_000, 0, 0, ())
    assert str(done) == (
        "window: 1,200 batches repeated, 40 redriven (9 of a schema that came), 30 late, 70 bad, "
        "55 state rows compared, 6,000 results: exact"
    )
    wrong = Followed("window", 1, 0, 0, 0, 0, 0, 0, 2, 1, (Finding(Kind.STATE, "rows"),))
    assert "(2 times far behind) (1 times begun anew)" in str(wrong)
    assert str(wrong).endswith("1 findings")
