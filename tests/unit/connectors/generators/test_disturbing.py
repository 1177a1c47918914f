import json
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.generators.disturbing import (
    DISORDER_MS,
    LATE_MS,
    REPEATED_MS,
    Breakage,
    Sent,
    Shares,
    disturbed,
)
from connectors.generators.encoding import AvroEncoding, as_line
from connectors.generators.kind import Made
from pipeline.errors import SchemaError
from pipeline.ids import SchemaId
from schemas import codec, wire
from schemas.avro import parse

TIMES = ("at",)
SCHEMA = parse(
    '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "at", "type": "long"}]}'
)
ENCODING = AvroEncoding(SCHEMA, SchemaId(7), "n")


def made(records: int) -> Iterator[Made]:
    """One record in each millisecond."""
    return (Made(n, {"n": n, "at": n}) for n in range(records))


def run(shares: Shares, records: int = 400, seed: int = 1) -> list[Sent]:
    """All that is sent."""
    return list(disturbed(made(records), TIMES, shares, seed))


def test_without_shares_nothing_changes() -> None:
    """Every record, in its order, at its time."""
    assert run(Shares()) == [Sent(one.at_ms, one.fields) for one in made(400)]


@settings(max_examples=15)
@given(*(st.floats(0, 1) for _ in range(4)), st.integers(0, 9))
def test_nothing_is_lost_and_times_never_fall(
    disorder: float, duplicates: float, late: float, bad: float, seed: int
) -> None:
    """Each record is sent once, or twice."""
    found = run(Shares(disorder, duplicates, late, bad), 60, seed)
    numbers = Counter(one.fields["n"] for one in found)
    assert set(numbers) == set(range(60))
    assert set(numbers.values()) <= {1, 2}
    sent = [one.at_ms for one in found]
    assert sent == sorted(sent)


def test_each_share_has_its_effect() -> None:
    """About so many records are disturbed, each within its limits."""
    held = [one.at_ms - one.fields["n"] for one in run(Shares(disorder=0.2))]  # type: ignore[operator]
    moved = [ms for ms in held if ms]
    assert 50 < len(moved) < 110
    assert DISORDER_MS[0] <= min(moved) <= max(moved) <= DISORDER_MS[1]
    twice = run(Shares(duplicates=0.2))
    assert 450 < len(twice) < 510
    again = [one.at_ms - one.fields["n"] for one in twice if one.at_ms != one.fields["n"]]  # type: ignore[operator]
    assert REPEATED_MS[0] <= min(again) <= max(again) <= REPEATED_MS[1]
    late = [one.fields["n"] - one.fields["at"] for one in run(Shares(late=0.2))]  # type: ignore[operator]
    back = [ms for ms in late if ms]
    assert 50 < len(back) < 110
    assert LATE_MS[0] <= min(back) <= max(back) <= LATE_MS[1]
    bad = Counter(one.breakage for one in run(Shares(bad=0.2)))
    assert 290 < bad[None] < 350
    assert set(bad) == {None, *Breakage}


def test_a_share_does_not_move_what_others_do() -> None:
    """The same records are late with duplicates and without."""
    alone = {str(one.fields) for one in run(Shares(late=0.1))}
    assert alone == {str(one.fields) for one in run(Shares(late=0.1, duplicates=0.5, bad=0.5))}


def test_records_without_end_are_disturbed_without_waiting() -> None:
    """What is held is bounded by time, so the first ones come at once."""
    endless = (Made(n, {"n": n, "at": n}) for n in count())
    found = list(islice(disturbed(endless, TIMES, Shares(0.5, 0.5, 0.5, 0.5), 1), 100))
    assert len(found) == 100


def bad(breakage: Breakage | None) -> Sent:
    """A record."""
    return Sent(0, {"n": 3, "at": 5}, breakage)


def test_a_bad_line_is_no_record() -> None:
    """It is no JSON, or has no time, or something else in its place."""
    assert as_line(bad(None), "at") == b'{"n":3,"at":5}\n'
    for breakage in Breakage:
        line = as_line(bad(breakage), "at")
        assert line.endswith(b"\n")
        try:
            value = json.loads(line)
        except ValueError:  # also text that is not UTF-8
            continue
        with pytest.raises(SchemaError):
            codec.encode(SCHEMA, codec.from_json(SCHEMA, value))


def test_a_bad_value_cannot_be_decoded() -> None:
    """Its frame is wrong, its schema unknown, or its body is cut off."""
    good = wire.split(ENCODING.value_of(bad(None)))
    assert isinstance(good, wire.Framed)
    assert codec.decode(SCHEMA, SCHEMA, good.body) == {"n": 3, "at": 5}
    assert ENCODING.key_of(bad(None)) == b"3"
    for breakage in Breakage:
        found = wire.split(ENCODING.value_of(bad(breakage)))
        if isinstance(found, wire.Framed) and found.schema == ENCODING.schema_id:
            with pytest.raises(SchemaError):
                codec.decode(SCHEMA, SCHEMA, found.body)
