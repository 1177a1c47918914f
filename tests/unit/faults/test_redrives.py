from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, SchemaId, TopicName
from pipeline.lanes.dead_letters import REDRIVEN_FROM, REDRIVEN_ORIGIN
from schemas import wire
from tests.faults.case import Fed
from tests.faults.cases import CASES
from tests.faults.history import Fate, Kind, Place, Sent
from tests.faults.judge import FragmentTopics, History
from tests.faults.letters import Accepted
from tests.faults.reads import Reads
from tests.faults.redrives import AHEAD_MAX_MS, Coming, origin_of, with_copies
from tests.unit.faults.test_judge import TOPICS, sent

WINDOW = CASES["window"]
COMES, NEVER = SchemaId(7), SchemaId(8)
REDRIVE = TopicName("local.net.counts.redrive")
READS = replace(TOPICS, reads=TOPICS.reads | {REDRIVE})
START_MS = 1_700_000_000_000
FED = 4_000


def refused(offset: int, schema: SchemaId) -> Sent:
    """A bad record that was sent."""
    place = Place(TopicName("net-readings"), 0, offset)
    return replace(sent()[-1], place=place, value=wire.join(schema, b"body"))


def copy(original: Sent, offset: int, letter: int, **changes: Any) -> KafkaRecord:
    """A redriven record."""
    at = original.place
    origin = f"{at.topic}/{at.partition}/{at.offset}".encode()
    headers = ((REDRIVEN_FROM, b"0/%d" % letter), (REDRIVEN_ORIGIN, origin))
    stamp = Millis(original.timestamp_ms)
    record = KafkaRecord(
        REDRIVE, at.partition, Offset(offset), stamp, original.key, original.value, headers
    )
    return replace(record, **changes)


def decode(record: object) -> Mapping[str, Any]:
    """Fields of whatever has a schema."""
    del record
    return {"sensor": "ash", "number": 4, "value": 5, "at": START_MS}


def history(*records: KafkaRecord, fragments: tuple[FragmentTopics, ...] = (READS,)) -> History:
    """Two bad records that were sent, and some that are in the redrive topic."""
    return History(
        (refused(0, COMES), refused(1, NEVER)), fragments, Reads((), records, records, ())
    )


def fed(coming: Coming) -> list[Fed]:
    """What a case sends while these schemas are to come."""
    case = coming.of(WINDOW, "net")
    assert case.settle_ms == WINDOW.settle_ms + AHEAD_MAX_MS
    return list(islice(case.feed(Random(1), START_MS), FED))


def test_only_some_good_records_come_by_a_schema_that_is_not_registered_yet() -> None:
    """They are bad, and ahead by less than the end of the results waits for."""
    some, value = fed(Coming({("net", "readings"): COMES})), wire.join(NEVER, b"x")
    ours = [one for one in some if one.spoil and one.spoil(value) == wire.join(COMES, b"x")]
    assert 0 < len(ours) < FED // 10
    assert {one.fate for one in ours} == {Fate.BAD}
    assert fed(Coming()) == fed(Coming({("other", "readings"): COMES}))


def test_copies_are_records_that_were_sent() -> None:
    """One whose schema has come has fields, and may be late; the other is bad as before."""
    ones = (copy(refused(0, COMES), 0, 5), copy(refused(1, NEVER), 1, 6))
    found, wrong = with_copies(history(*ones), Coming(revived={COMES}), decode)
    assert wrong == ()
    revived, bad = found.sent[2:]
    assert (revived.place, revived.fate) == (Place(REDRIVE, 0, 0), Fate.MAYBE_LATE)
    assert revived.fields == decode(None)
    assert (bad.place, bad.fate, bad.fields) == (Place(REDRIVE, 0, 1), Fate.BAD, None)


def test_a_network_without_redrives_has_no_copies() -> None:
    """Its history is the same."""
    plain = history(fragments=(TOPICS,))
    assert with_copies(plain, Coming(), decode) == (plain, ())


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ((copy(refused(0, COMES), 0, 5), copy(refused(0, COMES), 1, 5)), Kind.DUPLICATED),
        ((copy(refused(0, COMES), 0, 5, value=b"other"),), Kind.DIFFERENT),
        ((copy(refused(0, COMES), 0, 5, key=None),), Kind.DIFFERENT),
        ((copy(refused(9, COMES), 0, 5),), Kind.UNEXPECTED),
        ((copy(refused(0, COMES), 0, 5, headers=()),), Kind.UNEXPECTED),
    ],
)
def test_each_wrong_copy_is_found(records: tuple[KafkaRecord, ...], kind: Kind) -> None:
    """A dead letter that is redriven twice, other bytes, and records that nobody has sent."""
    _, wrong = with_copies(history(*records), Coming(), decode)
    assert [one.kind for one in wrong] == [kind]


def test_the_origin_is_in_a_header() -> None:
    """A topic's name may contain dots, but no slash."""
    assert origin_of(copy(refused(3, COMES), 0, 5)) == Place(TopicName("net-readings"), 0, 3)


def test_only_its_own_fragment_accepts_a_copy() -> None:
    """Other readers of the stream do not see it."""
    ones = (copy(refused(0, COMES), 0, 5),)
    found, _ = with_copies(history(*ones), Coming(revived={COMES}), decode)
    accepted = Accepted(found.sent, (), own={REDRIVE: TOPICS.name})
    stream = found.sent[-1].stream
    assert [one.place for one in accepted.of(TOPICS.name, stream)] == [Place(REDRIVE, 0, 0)]
    assert accepted.of("other", stream) == ()
