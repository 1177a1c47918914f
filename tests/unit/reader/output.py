"""An output in memory, with a fork, and a program that reads it."""

from dataclasses import dataclass, field

from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import Headers
from pipeline.ids import Epoch, Millis, Offset, TopicId, TopicName
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID, WRITTEN_TO
from pipeline.markers.codec import encode_boundary
from pipeline.markers.signals import BoundaryRecord, activity_key
from pipeline.names import boundaries_topic, tentative_topic
from pipeline.reader.reader import Connected, Reader
from pipeline.reader.results import Position, Stable, Start, Tentative, Undone
from pipeline.tentative.records import TentativeRecord, encode
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

TOPIC = TopicName("speeds")
PARTITIONS = 2
WRITER = "acme.tolls.speeds"


class Output:
    """A result topic, its boundaries and its tentative topic, written by hand."""

    def __init__(self, *, tentative: bool = True) -> None:
        self.clock = TwinClock()
        self.kafka = MemoryKafka(self.clock)
        create(self.kafka, TOPIC, partitions=PARTITIONS)
        create(self.kafka, boundaries_topic(TOPIC))
        if tentative:
            create(self.kafka, tentative_topic(TOPIC), partitions=PARTITIONS)

    @property
    def topic_id(self) -> TopicId:
        """Kafka's id of the result topic."""
        return TopicId(self.kafka.topics[TOPIC].topic_id)

    def stable(
        self,
        name: str,
        time: int,
        value: str | None = "v",
        *,
        correction: int | None = None,
        partition: int = 0,
    ) -> None:
        """A stable result."""
        headers: Headers = ((WRITTEN_TO, self.topic_id.encode()), (RESULT_ID, name.encode()))
        if correction is not None:
            headers = (*headers, (CORRECTION, str(correction).encode()))
        content = None if value is None else value.encode()
        self.kafka.append(
            TOPIC,
            name.encode(),
            content,
            timestamp_ms=time,
            headers=headers,
            partition=partition,
        )

    def tentative(self, record: TentativeRecord) -> None:
        """A record of the tentative topic."""
        sent = encode(record, self.topic_id)
        self.kafka.append(
            tentative_topic(TOPIC),
            sent.key,
            sent.value,
            timestamp_ms=sent.timestamp_ms,
            headers=sent.headers,
            partition=sent.partition,
        )

    def promise(self, boundary: int, *, writer: str = WRITER, topic_id: str | None = None) -> None:
        """A boundary that covers all stable results that there are."""
        positions = {
            number: Offset(len(one.log))
            for number, one in enumerate(self.kafka.topics[TOPIC].partitions)
        }
        of = self.topic_id if topic_id is None else TopicId(topic_id)
        record = BoundaryRecord(of, writer, Epoch(1), Millis(boundary), positions)
        topic = boundaries_topic(TOPIC)
        self.kafka.append(topic, writer.encode(), encode_boundary(record))

    def activity(self) -> None:
        """An activity report, and a record that Medusa did not write."""
        self.kafka.append(boundaries_topic(TOPIC), activity_key(WRITER), b"{}")
        self.kafka.append(boundaries_topic(TOPIC), b"somebody", b"hello")


@dataclass
class Program:
    """Keeps what counts, and a list of what was reported."""

    values: dict[bytes, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    fails: bool = False

    def on_tentative(self, result: Tentative) -> None:
        """Keep it."""
        self.values[result.id] = result.value.decode()
        self.told.append(f"tentative {result.id.decode()} {result.generation}")

    def on_stable(self, result: Stable) -> None:
        """Keep it."""
        if self.fails:
            raise OSError("the disk is full")
        name = (result.id or b"-").decode()
        if result.id is not None:
            self.values[result.id] = (result.value or b"").decode()
        corrects = "" if result.corrects is None else f" corrects {result.corrects}"
        self.told.append(f"stable {name} {result.confirms}{corrects}")

    def on_undo(self, undone: Undone) -> None:
        """Forget it."""
        self.values.pop(undone.id, None)
        self.told.append(f"undo {undone.id.decode()} {undone.generation} {undone.corrects}")

    def on_done(self, generation: str) -> None:
        """Note it."""
        self.told.append(f"done {generation}")

    def restarted(self) -> None:
        """Nothing was reported yet."""
        self.told.clear()


def open_on(
    output: Output,
    program: Program,
    start: Position | Start = Start.BEGINNING,
    most_open: int = 100,
) -> Reader:
    """A reader of the output."""
    connected = Connected(output.kafka, output.kafka.reader(1.0), output.clock)
    return Reader(connected, TOPIC, program, start, most_open)


def read(reader: Reader) -> None:
    """Read all that there is."""
    reader.poll()
    while reader.poll():
        pass
