"""Reference: a fragment's expected results as a function of its inputs and recorded decisions.

The reference reads each committed transaction. It uses documents, not plans: it computes the
boxes of the deployed document over the records that were read, and it tracks the read positions
by topic id. It is independent of the code that decides where a lane starts.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from brokers.records import KafkaRecord
from pipeline.ids import Incarnation, SchemaId, TopicId, TopicName
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput
from schemas import wire
from tests.histories.again import Again, dropped
from tests.histories.boxes import Seen, Streams, core, flow, pairs, windows
from tests.histories.check import follows
from tests.histories.compared import difference
from tests.histories.documents import Box, Net
from tests.histories.engine import Executed
from tests.histories.gaps import gap_of, omitted, wrong_in
from tests.histories.idle import was_idle
from tests.histories.kafka import Topics, log, topic_of
from tests.histories.world import NOWHERE_ID, Commit, Deployment, same
from tests.histories.written import Place, error_headers, framed_by, letters_of


@dataclass(frozen=True, slots=True)
class Wrong:
    """A difference between the expected and the actual results."""

    kind: str
    fragment: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.fragment}: {self.text}"


# --- one fragment ---------------------------------------------------------------------------------


@dataclass
class Ledger:
    """All reads and writes of one fragment in one life of its network.

    Args:
        kafka: for the records that were read.
        undecided: schemas deleted or registered late: the time of the read decides.
        begins: chosen start positions of new inputs, and their ends at that time.
        read: next offset by topic id and partition.
        placed: the ids of the topics in which a marker had positions.
        accepted: the input rows of each side of the stateful box; `only` for an aggregate.
        left_out: the records of its dead letters, with the newest dead letter of each.
        settled: the watermark up to which windows were published.
        choices: pending choices about its state, by version; each applies to one incarnation.
        begun_by: the version that started its present incarnation.
        read_for: its positions after its last batch for each output, by the output's id.
        may_forget: whether it may have gaps.
        withheld: results of windows at or below this time are in a gap.
        results: those that were written before their marker, and maybe again.
    """

    fragment: str
    kafka: Topics
    undecided: AbstractSet[SchemaId]
    report: Callable[[Wrong], None]
    begins: dict[tuple[str, int], tuple[int, int]]
    deployment: Deployment | None = None
    read: dict[tuple[str, int], int] = field(default_factory=dict)
    active: frozenset[str] = frozenset()
    placed: frozenset[str] = frozenset()
    accepted: dict[str, list[Seen]] = field(default_factory=dict)
    left_out: dict[Place, KafkaRecord] = field(default_factory=dict)
    settled: int = 0
    choices: dict[int, tuple[str, Incarnation]] = field(default_factory=dict)
    marker: CommitMarker | None = None
    begun_by: int = 0
    batches: int = 0
    read_for: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)
    may_forget: bool = False
    withheld: int = 0
    results: Again = field(default_factory=Again)

    @property
    def known(self) -> frozenset[str]:
        """The ids of the topics that were ever read or have decided start positions."""
        return self.placed.union(topic for topic, _ in self.read)

    @property
    def positioned(self) -> frozenset[str]:
        """The ids of the topics in the positions of the last marker."""
        sources = () if self.marker is None else self.marker.sources
        return frozenset(source.topic_id for source in sources)

    @property
    def has_read(self) -> bool:
        """Whether any record was read."""
        return self.marker is not None and self.marker.totals.records_in > 0

    def wrong(self, kind: str, text: str) -> None:
        """Report a difference."""
        self.report(Wrong(kind, self.fragment, text))

    def process(self, commit: Commit, deployment: Deployment) -> None:
        """Process a transaction."""
        before, marker = self.marker, commit.marker
        for text in follows(before, marker):
            self.wrong("marker", text)
        self._cut(before, commit)
        self.marker = marker
        plan = self._planned(deployment)
        if plan is None or not same(plan, commit.fragment):
            self.wrong("plan", "it runs another plan than its document's")
            return
        if self.deployment is not deployment:
            self.deployment = deployment
            # A lane of an earlier version may have read further after the start was decided.
            for key in self.begins.keys() & self.read.keys():
                self.read[key] = max(self.begins[key][0], self.read[key])
            topics = [self.kafka.topics.get(i.topic) for i in plan.inputs]
            self.active = frozenset(t.topic_id for t in topics if t is not None)
        new_life = before is None or before.incarnation != marker.incarnation
        executed = commit.executed
        if executed is not None and executed.rebuild:
            executed = None
        if new_life:
            self._begun(before, plan, commit)
            self._begun_after_gap(plan, marker)
        self.left_out |= dict(letters_of(commit))
        self.placed |= {source.topic_id for source in marker.sources}
        ran_before = before is not None and not new_life and before.batch == marker.batch
        if ran_before and any(r.topic == plan.output.topic for r in commit.records):
            self.wrong("repeated", f"batch {marker.batch} is written a second time")
        if executed is None or ran_before:
            return
        self.batches += 1
        self._batch(commit, executed, plan, before)

    def _cut(self, before: CommitMarker | None, commit: Commit) -> None:
        """Note the cut of the next batch, and check that none was dropped."""
        marker = commit.marker
        if dropped(before, marker):
            self.wrong("marker", f"batch {marker.batch} has dropped the cut of the next one")
        if marker.cut is not None:
            topic = self.kafka.by_id[marker.output]
            self.results.begin(marker.cut.id, commit.version, topic)

    def runs(self, deployment: Deployment) -> bool:
        """Whether the running plan is that of a version."""
        if self.deployment is None:
            return False
        one, other = self._planned(self.deployment), self._planned(deployment)
        return one is not None and other is not None and same(one, other)

    @property
    def undone(self) -> bool:
        """Whether a choice about its state is pending."""
        last = self.marker.incarnation if self.marker is not None else None
        return any(incarnation == last for _, incarnation in self.choices.values())

    def pending(self) -> list[int]:
        """The ends of unpublished windows."""
        plan = None if self.deployment is None else self._planned(self.deployment)
        if plan is None or self.deployment is None:
            return []
        box = core(self.deployment.net, self.fragment, _inputs(plan))
        if box is None or box.kind != "aggregate":
            return []
        found = windows(self.accepted.get("only", ()), box.number, self.settled, 1 << 62)
        return sorted({row.at for row in found})

    def unread(self) -> list[str]:
        """The unread ranges of its inputs."""
        return [
            f"{topic_id}/{partition}: {read} of {end}"
            for topic_id in sorted(self.active)
            for partition, read, end in self.rest(topic_id)
            if read < end
        ]

    def rest(self, topic_id: str) -> Iterator[tuple[int, int, int]]:
        """The unread ranges of a topic: partition, next offset, end."""
        topic = self.kafka.by_id[topic_id]
        for partition in range(len(topic.partitions)):
            yield partition, self._next(topic_id, partition), int(log(topic, partition).end())

    def _next(self, topic_id: str, partition: int) -> int:
        """The next offset to read."""
        key = topic_id, partition
        start = int(log(self.kafka.by_id[topic_id], partition).start)
        return self.read.get(key, max(self.begins.get(key, (0, 0))[0], start))

    def begin_anew(
        self, marker: CommitMarker, others: Iterable["Ledger"], passed_over: Collection[str]
    ) -> None:
        """Start in the topic of other writers: at the chosen positions, without state.

        Records to skip include those read for this output meanwhile.
        `others`: its earlier writers, including the fragment itself before it started anew;
        `passed_over`: the ids of the topics whose records are to be skipped.
        """
        positions = [one.read_for.get(marker.output, {}) for one in others]
        read = {key: max(one.get(key, 0) for one in positions) for key in self.begins if positions}
        self.accepted, self.read = {}, {}
        self.placed = frozenset()
        self.settled = max(marker.eviction_ms or 0, marker.boundary_ms or 0)
        read_now = {source.topic_id for source in marker.sources}
        for key, (begin, until) in list(self.begins.items()):
            if key[0] not in read_now:
                continue  # a later deploy has decided that already
            if key[0] in passed_over:
                last = read.get(key, begin)
                self.begins[key] = max(begin, last), max(until, last)
            self.read[key] = self.begins[key][0]

    # --- a batch ----------------------------------------------------------------------------------

    def _batch(
        self, commit: Commit, executed: Executed, plan: Fragment, before: CommitMarker | None
    ) -> None:
        assert self.deployment is not None
        net = self.deployment.net
        letters = {place: error_headers(letter)["reason"] for place, letter in letters_of(commit)}
        rows, read = self._rows(net, executed, letters, commit.marker)
        for place in letters.keys() - read:
            self.wrong("letter", f"a dead letter names {place}, which the batch has not read")
        self.read_for[commit.marker.output] = dict(self.read)
        expected = list(self._due(net, plan, rows, executed))
        promised = None if before is None else before.boundary_ms
        published = [r for r in commit.records if r.topic == plan.output.topic]
        may_differ = False
        if before is not None and before.cut is not None:
            published = self.results.once(before.cut.id)
            cut_by = self.results.cut_by.get(before.cut.id)
            may_differ = cut_by != commit.version or bool(self.undecided)
        stateless = plan.stateful_box is None
        for record in published:
            broken = promised is not None and record.timestamp_ms <= promised
            if broken != is_marked(record) or (broken and not stateless):
                self.wrong("promise", f"a result at {record.timestamp_ms}, promised {promised}")
            if broken and not self._may_be_late(plan, executed, commit.marker):
                self.wrong("promise", f"a result at {record.timestamp_ms} is late, no writer idle")
        found = difference(expected, published, may_differ=may_differ)
        if found is not None:
            self.wrong(*found)

    def _may_be_late(self, plan: Fragment, executed: Executed, marker: CommitMarker) -> bool:
        """Whether a result without state may break the promise of the batches before.

        Derived inputs are in order, unless their writers were idle, forwarded what was late
        themselves, or had their time settled by another plan.
        """
        derived = {stream.name for stream in plan.inputs if isinstance(stream, DerivedStream)}
        if len(derived) < len(plan.inputs):
            return True
        if any(source.settled_ms is not None for source in marker.sources):
            return True
        return any(
            was_idle(self.kafka, TopicName(topic))
            or any(is_marked(one) for one in self._read(topic_id, ranges))
            for (_, topic), (topic_id, ranges) in executed.reads.items()
        )

    def _read(self, topic_id: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[KafkaRecord]:
        """The records of ranges by partition."""
        for partition, (start, end) in ranges.items():
            yield from log(self.kafka.by_id[topic_id], partition).read(start, end)

    def _due(self, net: Net, plan: Fragment, rows: Streams, executed: Executed) -> Iterator[Seen]:
        """The results of a batch."""
        box = core(net, self.fragment, _inputs(plan))
        if box is None:
            yield from flow(net, self.fragment, rows)
            return
        made: list[Seen]
        if box.kind == "aggregate":
            only = self.accepted.setdefault("only", [])
            only += flow(net, box.inputs[0], rows)
            until = max(self.settled, executed.eviction_ms)
            made = list(windows(only, box.number, self.settled, until))
            made = [row for row in made if row.at > self.withheld]
            self.settled = until
        else:
            left, right = (self.accepted.setdefault(side, []) for side in ("left", "right"))
            more = flow(net, box.inputs[0], rows), flow(net, box.inputs[1], rows)
            made = list(pairs(more[0], right, box.number))
            right += more[1]
            made += pairs((*left, *more[0]), more[1], box.number)
            left += more[0]
        yield from flow(net, self.fragment, {box.name: made})

    def _rows(
        self,
        net: Net,
        executed: Executed,
        letters: Mapping[Place, str],
        marker: CommitMarker,
    ) -> tuple[dict[str, list[Seen]], set[Place]]:
        """The rows of a batch by stream, and all places of its records."""
        rows: dict[str, list[Seen]] = {}
        places: set[Place] = set()
        keeps = executed.fragment.stateful_box is not None
        limit = executed.late_ms if keeps else 0
        skips = {source.topic_id: source.skipped_ms for source in marker.sources}
        box = core(net, self.fragment, frozenset(name for name, _ in executed.reads))
        for (name, topic), (topic_id, ranges) in executed.reads.items():
            skipped = skips.get(TopicId(topic_id))
            stream = rows.setdefault(name, [])
            for partition, (start, end) in ranges.items():
                self._account(topic_id, partition, start, end)
                for record in log(self.kafka.by_id[topic_id], partition).read(start, end):
                    place = topic_id, partition, int(record.offset)
                    places.add(place)
                    why = letters.get(place)
                    row = self._row(net, name, record)
                    self._judge(record, place, why, row, limit)
                    if why == "late" and row is not None and net.stream(name) is None:
                        self._judge_late(record, TopicName(topic), row, marker)
                    if why is None and row is not None and not _settled(row, box, skipped):
                        stream.append(row)
        return rows, places

    def _judge(
        self, record: KafkaRecord, place: Place, why: str | None, row: Seen | None, limit: int
    ) -> None:
        if framed_by(record) in self.undecided:
            return  # it depends on the time of the read
        if why is None and row is None:
            self.wrong("letter", f"the bad record {place} was taken for good")
        if why == "late" and (row is None or row.at > limit):
            self.wrong("letter", f"the record {place} was not late")
        if why not in (None, "late") and row is not None:
            self.wrong("letter", f"the good record {place} is a dead letter: {why}")

    def _judge_late(
        self, record: KafkaRecord, topic: TopicName, row: Seen, marker: CommitMarker
    ) -> None:
        """A derived record is late only if event time went on without its writer.

        So if the writer had been idle, or had marked it as late; or if the time was settled by
        another plan.
        """
        settled = next(
            source.settled_ms for source in marker.sources if source.topics[0][0] == topic
        )
        if is_marked(record) or (settled is not None and row.at <= settled):
            return
        if not was_idle(self.kafka, topic):
            self.wrong("letter", f"{record.topic}/{record.offset} is late, its writer never idle")

    def _account(self, topic_id: str, partition: int, start: int, end: int) -> None:
        """Compare the start of a batch with the end of the previous one."""
        expected = self._next(topic_id, partition)
        where = f"partition {partition} of {topic_id}"
        if start < expected:
            self.wrong("repeated", f"{where} is read again from {start} to {expected}")
        if start > expected:
            self.wrong("lost", f"{where} is not read from {expected} to {start}")
        self.read[topic_id, partition] = end

    def _row(self, net: Net, name: str, record: KafkaRecord) -> Seen | None:
        """A record as a row; None for an invalid one."""
        framed = wire.split(record.value)
        if not isinstance(framed, wire.Framed):
            return None
        if framed.schema == NOWHERE_ID and framed.schema not in self.undecided:
            return None
        values: dict[str, int] = json.loads(framed.body)
        stream = net.stream(name)
        if stream is None:  # an earlier version of the writer may have written more columns
            columns = net.columns(name)
            values = {column: value for column, value in values.items() if column in columns}
            return Seen(int(record.timestamp_ms), values)
        if values["at"] > record.timestamp_ms + stream.ahead_ms:
            return None
        return Seen(values["at"], values)

    def _begun_after_gap(self, plan: Fragment, marker: CommitMarker) -> None:
        """If its incarnation has begun after a gap: the state is empty, the inputs begin later."""
        gap = gap_of(marker)
        if gap is None or self.deployment is None:
            return
        net, rows = self.deployment.net, [row for one in self.accepted.values() for row in one]
        for one in omitted(gap, marker, plan):
            self._account(one.topic_id, one.partition, one.begin, one.end)
            records = log(self.kafka.by_id[one.topic_id], one.partition).read(one.begin, one.end)
            found = (self._row(net, one.stream, record) for record in records)
            rows += [row for row in found if row is not None]
        box = core(net, self.fragment, _inputs(plan))
        for text in wrong_in(gap, box if self.may_forget else None, rows):
            self.wrong("gap", text)
        self.accepted = {}
        if box is not None and box.kind == "aggregate":
            self.withheld = max(self.withheld, int(gap.until_ms))

    # --- another plan -----------------------------------------------------------------------------

    def choose(self, version: int, choice: str) -> None:
        """Store a choice about its state in a version."""
        assert self.marker is not None, "what has no marker has no state"
        self.choices[version] = choice, self.marker.incarnation

    def _begun(self, before: CommitMarker | None, plan: Fragment, commit: Commit) -> None:
        """A new incarnation has started: apply a pending choice about its state.

        Also if a lane of an earlier version has started anew after the choice.
        """
        choice, of = self.choices.get(commit.version, ("", None))
        if before is not None and (before.incarnation == of or self.begun_by < commit.version):
            self._chosen(choice, plan, commit)
        self.begun_by = commit.version

    def _chosen(self, choice: str, plan: Fragment, commit: Commit) -> None:
        """Apply a choice about state: every later result is of the new plan alone."""
        if not choice:
            return
        assert self.deployment is not None
        self.accepted, self.withheld = {}, 0
        marker, letters = commit.marker, dict(letters_of(commit))
        self.settled = max(self.settled, marker.eviction_ms or 0, marker.boundary_ms or 0)
        net = self.deployment.net
        box = core(net, self.fragment, _inputs(plan))
        if choice != "rebuild" or box is None:
            return
        rows: dict[str, list[Seen]] = {}
        skips = {source.name: source.skipped_ms for source in marker.sources}
        for stream in plan.inputs:
            rebuilt = self._rebuilt(net, stream, letters, commit.letters_from)
            skipped = skips.get(stream.name)
            rows[stream.name] = [row for row in rebuilt if not _settled(row, box, skipped)]
        sides = ("only",) if box.kind == "aggregate" else ("left", "right")
        for side, name in zip(sides, box.inputs, strict=True):
            self.accepted[side] = flow(net, name, rows)

    def _rebuilt(
        self,
        net: Net,
        stream: FragmentInput,
        letters: Mapping[Place, KafkaRecord],
        letters_from: Mapping[int, int],
    ) -> Iterator[Seen]:
        """The rows of a stream that a chosen rebuild reads.

        `letters`: its dead letters; `letters_from`: where those before began when it read them.
        """
        topic, name = self.kafka.topics[stream.topic], stream.name
        for partition in range(len(topic.partitions)):
            key = topic.topic_id, partition
            begin = 0
            if key not in self.read and key in self.begins:
                begin, self.read[key] = self.begins[key]
                if topic.topic_id in self.placed:  # a lane has started there, and read nothing yet
                    begin, self.read[key] = 0, begin
            for record in log(topic, partition).read(begin, self.read.get(key, 0)):
                place = (*key, int(record.offset))
                if self._is_held(self.left_out.get(place), letters_from):
                    continue
                row, letter = self._row(net, name, record), letters.get(place)
                why = None if letter is None else error_headers(letter)["reason"]
                self._judge(record, place, why, row, 0)
                if row and why is None:
                    yield row

    def _is_held(self, letter: KafkaRecord | None, letters_from: Mapping[int, int]) -> bool:
        """Whether there is a dead letter that retention had not deleted."""
        if letter is None:
            return False
        start = log(topic_of(self.kafka, letter.topic), letter.partition).start
        return letter.offset >= letters_from.get(letter.partition, start)

    def _planned(self, deployment: Deployment) -> Fragment | None:
        found = (f for f in deployment.plan.fragments if f.name == self.fragment)
        return next(found, None)


def is_marked(record: KafkaRecord) -> bool:
    """Whether a result is marked as late, so that it breaks no promise."""
    return any(name == LATE_RESULT for name, _ in record.headers)


def _settled(row: Seen, box: Box | None, skipped_ms: int | None) -> bool:
    """Whether a row's time was final before its source was first read."""
    if skipped_ms is None:
        return False
    windowed = box is not None and box.kind == "aggregate"
    end = row.at - row.at % box.number + box.number if windowed and box is not None else row.at
    return end <= skipped_ms


def _inputs(plan: Fragment) -> frozenset[str]:
    return frozenset(stream.name for stream in plan.inputs)
