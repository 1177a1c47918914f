"""Source ids: match the sources of a plan with those of a commit marker. Pure.

A name is a label: streams are renamed, and a topic that is deleted and created again keeps its
name. So stored data about a source (positions in commit markers, dead letters, redriven records)
refers to its `SourceId`: Kafka's id of the topic that carries the stream, and a number, since
several sources may read one topic. The id is assigned permanently at the first read.

`carry` applies a marker to another plan: positions of renamed sources move to the new name, and
positions of sources that are no longer read stay in the marker in case they return.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, SourceId, StreamName, TopicId, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.deploys import NO_DEPLOY, DeployId
from pipeline.markers.positions import InputPartition, LeftSource, MarkedSource, Positions
from pipeline.markers.refused import Refused
from pipeline.planner.digest import answer_digest, source_digest, timing_digest
from pipeline.planner.plan import Fragment, FragmentInput


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source in a plan.

    Args:
        name: of its stream.
        definition: digest of the settings that decide the rows of its records; contains no name.
        timing: digest of the settings that decide their event times.
        topics: as in `MarkedSource`.
    """

    name: StreamName
    definition: str
    timing: str
    topics: tuple[tuple[TopicName, TopicId], ...]

    @property
    def topic_id(self) -> TopicId:
        """The id of the topic that carries the stream."""
        return self.topics[0][1]


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin of a source that a fragment has never read, as decided by a deploy.

    Args:
        offsets: the first offset to read in each partition of the stream's topic.
        until: ends of the partitions at that time: a state that is rebuilt from the log includes
            the records before them.
        skips: whether records of an already settled time are skipped; else they are late.
        passes_over: whether the existing records of the topic are passed over.
        deploy: that deploy; `NO_DEPLOY` for a fragment that begins anew with all its sources.
    """

    offsets: Mapping[int, Offset]
    until: Mapping[int, Offset]
    skips: bool
    passes_over: bool
    deploy: DeployId = NO_DEPLOY

    def not_before(self, starts: Mapping[int, Offset]) -> "Begin":
        """The same, with offsets raised to the present starts of the partitions."""

        def held(offsets: Mapping[int, Offset]) -> dict[int, Offset]:
            return {p: max(offset, starts.get(p, offset)) for p, offset in offsets.items()}

        return replace(self, offsets=held(self.offsets), until=held(self.until))


_NOTHING: Mapping[StreamName, Begin] = {}


@dataclass(frozen=True, slots=True)
class Carried:
    """A marker under the names of a plan.

    Args:
        marker: with the positions of all sources read before.
        unread: the sources that were never read, or only by a lane of an earlier version of the
            network that began after a deploy had decided where they begin: that decision counts.
        read: positions of such a lane in them, if it has run a batch.
        same: whether the plan reads exactly the sources of the marker's lane, in the same order.
    """

    marker: CommitMarker
    unread: tuple[StreamName, ...]
    read: Positions
    same: bool


def next_number(marker: CommitMarker) -> int:
    """A number that no source id of the fragment has ever contained."""
    return max([marker.retired, *(_number(one.id) + 1 for one in _known(marker))])


def _known(marker: CommitMarker) -> tuple[MarkedSource, ...]:
    return (*marker.sources, *(one.source for one in marker.left))


def _number(source: SourceId) -> int:
    return int(source.rpartition("/")[2])


def planned_sources(
    fragment: Fragment, topic_ids: Mapping[TopicName, str]
) -> tuple[PlannedSource, ...]:
    """Compute the sources of a fragment, in the order in which its query reads them.

    Args:
        fragment: as planned.
        topic_ids: of all topics that it reads, from the catalog, with an existing redrive topic.
    """
    inputs = {stream.name: stream for stream in fragment.inputs}
    used = dict.fromkeys(way.source for way in fragment.ways)
    return tuple(_planned(inputs[name], fragment, topic_ids) for name in used)


def _planned(
    stream: FragmentInput, fragment: Fragment, topic_ids: Mapping[TopicName, str]
) -> PlannedSource:
    names = fragment.names
    again = [names.redrive] if names.redrive in topic_ids else []
    topics = (stream.topic, *again)
    ids = tuple((topic, TopicId(topic_ids[topic])) for topic in topics)
    return PlannedSource(stream.name, source_digest(stream), timing_digest(stream), ids)


def named_sources(fragment: Fragment) -> tuple[MarkedSource, ...]:
    """The sources of a fragment over topics that do not exist, with their names as ids.

    There is no redrive topic.
    """
    topics = [stream.topic for stream in fragment.inputs]
    return first_sources(planned_sources(fragment, {topic: str(topic) for topic in topics}))


def first_sources(planned: Sequence[PlannedSource]) -> tuple[MarkedSource, ...]:
    """The sources of a fragment that has never run."""
    return _marked(planned, {}, (), 0)


def sources_after(
    planned: Sequence[PlannedSource], marker: CommitMarker | None
) -> tuple[MarkedSource, ...]:
    """The sources with ids that are new to the fragment of a marker; None: it has never run."""
    if marker is None:
        return first_sources(planned)
    return _marked(planned, {}, (), next_number(marker))


def answered_by(fragment: Fragment, sources: Iterable[MarkedSource]) -> str:
    """Digest of the settings that decide the matches of an as-of join; see `answer_digest`."""
    return answer_digest(fragment, {source.name: source.id for source in sources})


def carry(
    marker: CommitMarker,
    planned: Sequence[PlannedSource],
    decided: Mapping[StreamName, Begin] = _NOTHING,
) -> Carried:
    """Apply a marker to a plan: positions move to the present names of their sources.

    Args:
        marker: the fragment's last marker.
        planned: the sources of the plan, in its order.
        decided: begins of sources, as decided by deploys, carried out or not.
    """
    left = {one.source.id: one for one in marker.left}
    was = match(planned, marker.sources)
    rest = [source for source in planned if source.name not in was]
    was |= match(rest, [one.source for one in marker.left])
    again = {
        name: was.pop(name)
        for name, begin in decided.items()
        if name in was and begin.deploy.is_after(marker.decided)
    }
    sources = _marked(planned, was, _known(marker), marker.retired)
    names = {was[source.name].id: source for source in sources if source.name in was}
    # Event times under another definition do not apply to the present rows.
    alike = {i: one for i, one in names.items() if was[one.name].timing == one.timing}

    def renamed(of: str, of_left: str) -> dict[InputPartition, int]:
        now = alike if of == "progress" else names
        found = dict(_renamed(getattr(marker, of), marker.sources, now))
        for one in left.values():
            found |= dict(_renamed(getattr(one, of_left), (one.source,), now))
        return found

    same = [one.id for one in sources] == [one.id for one in marker.sources]
    cut = marker.cut
    if cut is not None:
        end = {at: Offset(n) for at, n in _renamed(cut.end, marker.sources, names)}
        cut = replace(cut, end=end) if same else None
    kept = names.keys() | {one.id for one in again.values()}
    gone = [one for identity, one in left.items() if identity not in kept]
    gone += [_left(marker, one) for one in marker.sources if one.id not in kept]
    return Carried(
        replace(
            marker,
            start={at: Offset(n) for at, n in renamed("start", "end").items()},
            end={at: Offset(n) for at, n in renamed("end", "end").items()},
            needed={at: Offset(n) for at, n in renamed("needed", "needed").items()},
            progress={at: Millis(n) for at, n in renamed("progress", "progress").items()},
            refused=_refused(marker, names),
            sources=sources,
            left=tuple(gone),
            cut=cut,
        ),
        unread=tuple(source.name for source in planned if source.name not in was),
        read=_read(marker, {again[one.name].id: one for one in sources if one.name in again}),
        same=same,
    )


def _read(
    marker: CommitMarker, now: Mapping[SourceId, MarkedSource]
) -> dict[InputPartition, Offset]:
    """Positions in the topics that carry streams, under the present sources `now`.

    Sources that no batch has read yet are left out: their positions are only begins.
    """
    begun = {one.id for one in _known(marker) if one.begun}
    now = {identity: one for identity, one in now.items() if identity in begun}
    found = dict(_renamed(marker.end, marker.sources, now))
    for one in marker.left:
        found |= _renamed(one.end, (one.source,), now)
    data = {(source.name, source.topics[0][0]) for source in now.values()}
    return {at: Offset(n) for at, n in found.items() if (at.input, at.topic) in data}


def match(
    planned: Sequence[PlannedSource], known: Sequence[MarkedSource]
) -> dict[StreamName, MarkedSource]:
    """Match each planned source with a known one; unmatched sources are left out.

    Only sources over the same topic match. Of several, the one of the same definition and name
    matches, else of the same definition, else of the same name, else the first.
    """
    found: dict[StreamName, MarkedSource] = {}
    left = list(known)
    for definition, name in ((True, True), (True, False), (False, True), (False, False)):
        for source in planned:
            alike = (
                one
                for one in left
                if one.topic_id == source.topic_id
                and (not definition or one.definition == source.definition)
                and (not name or one.name == source.name)
            )
            one = None if source.name in found else next(alike, None)
            if one is not None:
                found[source.name] = one
                left.remove(one)
    return found


def begins_of(
    carried: Carried, decided: Mapping[StreamName, Begin], place: str
) -> Mapping[StreamName, Begin]:
    """Select the begins of the sources that a lane has never read.

    Args:
        carried: its last marker, under the names of its plan.
        decided: begins decided by deploys, also of sources that were read since.
        place: names the fragment, for the error.

    Raises:
        RefusedError: one has no decided begin, and results were published without it.
    """
    undecided = [name for name in carried.unread if name not in decided]
    if undecided and carried.marker.totals.records_in:
        raise RefusedError(
            f"stream {undecided[0]} was never read here, and no deploy has decided where to begin",
            place=place,
            hint=f"deploy with `--input {undecided[0]}=beginning` or `--input "
            f"{undecided[0]}=end`; `medusa plan` says what either means.",
        )
    return {name: decided[name] for name in carried.unread if name in decided}


def first_positions(
    positions: Positions, sources: Sequence[MarkedSource], decided: Mapping[StreamName, Begin]
) -> Positions:
    """Begin positions of a first start: by the document, or as decided by a deploy."""
    return {**positions, **{at: offset for at, offset, _ in _decided(sources, decided)}}


def begun(carried: Carried, begins: Mapping[StreamName, Begin], *, rebuilds: bool) -> CommitMarker:
    """Add the begin positions of sources that were never read to a marker.

    Records that a lane of an earlier version of the network has read meanwhile are not read again.

    Args:
        carried: the marker under the names of the plan.
        begins: where these sources begin.
        rebuilds: whether the state is rebuilt from the log now: then it includes, unpublished, the
            records before the begin.
    """
    marker = carried.marker
    if not begins:
        return marker
    read = {at: offset for at, offset in carried.read.items() if at.input in begins}
    end, needed = dict(read), dict.fromkeys(read, Offset(0)) if rebuilds else dict(read)
    for at, offset, until in _decided(marker.sources, begins):
        last = until if rebuilds else offset
        end[at] = max(last, read.get(at, last))
        needed[at] = offset if rebuilds else end[at]
    skipping = {name for name, begin in begins.items() if begin.skips}
    return replace(
        marker,
        start={**marker.start, **end},
        end={**marker.end, **end},
        needed={**marker.needed, **needed},
        sources=tuple(
            replace(source, skipped_ms=marker.settled_ms) if source.name in skipping else source
            for source in marker.sources
        ),
    )


def _decided(
    sources: Sequence[MarkedSource], begins: Mapping[StreamName, Begin]
) -> Iterator[tuple[InputPartition, Offset, Offset]]:
    """Each partition with a decided begin: its first offset, and its end at that time."""
    for source in sources:
        begin = begins.get(source.name)
        if begin is not None:
            for partition, offset in begin.offsets.items():
                at = InputPartition(source.name, source.topics[0][0], partition)
                yield at, offset, begin.until.get(partition, offset)


def _marked(
    planned: Sequence[PlannedSource],
    was: Mapping[StreamName, MarkedSource],
    before: Iterable[MarkedSource],
    retired: int,
) -> tuple[MarkedSource, ...]:
    """Assign ids to the planned sources: their known ids, or new ones.

    `before`: the sources whose ids are in use; `retired`: as in the marker.
    """
    numbers: dict[TopicId, int] = {}
    for one in before:
        numbers[one.topic_id] = max(_number(one.id) + 1, numbers.get(one.topic_id, retired))
    found = []
    for source in planned:
        known = was.get(source.name)
        if known is not None:
            one = replace(
                known,
                name=source.name,
                definition=source.definition,
                timing=source.timing,
                topics=source.topics,
            )
        else:
            number = numbers.get(source.topic_id, retired)
            numbers[source.topic_id] = number + 1
            identity = SourceId(f"{source.topic_id}/{number}")
            one = MarkedSource(
                identity, source.name, source.definition, source.timing, source.topics
            )
        found.append(one)
    return tuple(found)


def _renamed(
    values: Mapping[InputPartition, int],
    sources: Sequence[MarkedSource],
    names: Mapping[SourceId, MarkedSource],
) -> Iterator[tuple[InputPartition, int]]:
    """Values under the present names of their sources and topics.

    Args:
        values: under the names of `sources`.
        sources: under their former names.
        names: present sources by id; values of others, and of topics not read now, are left out.
    """
    for source in sources:
        now = names.get(source.id)
        if now is None:
            continue
        ids = dict(source.topics)
        topics = {topic_id: topic for topic, topic_id in now.topics}
        for at, value in values.items():
            if at.input == source.name and ids.get(at.topic) in topics:
                yield InputPartition(now.name, topics[ids[at.topic]], at.partition), value


def _left(marker: CommitMarker, source: MarkedSource) -> LeftSource:
    """Keep the positions of a source that is no longer read."""

    def of(positions: Positions) -> Positions:
        return {
            at: offset
            for at, offset in positions.items()
            if at.input == source.name and at.topic in source.records
        }

    progress = {at: ms for at, ms in marker.progress.items() if at.input == source.name}
    return LeftSource(source, of(marker.end), of(marker.needed), progress)


def _refused(marker: CommitMarker, names: Mapping[SourceId, MarkedSource]) -> Mapping[str, Refused]:
    """Counts of dead letters that have a limit, under the present names of their streams."""
    now = {one.name: names[one.id].name for one in marker.sources if one.id in names}
    return {now.get(StreamName(of), of): counts for of, counts in marker.refused.items()}
