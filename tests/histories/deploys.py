"""Deploys of a history: random choices, and comparison of `plan` with the reference."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Final

from pipeline.clock import Deadline
from pipeline.deploy import apply, remove
from pipeline.deploy.apply import Comparison
from pipeline.deploy.documents import Document
from pipeline.errors import DocumentError, MedusaError
from pipeline.ids import FragmentName, NetworkId, NetworkName, StreamName, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.inputs import Fared, InputFrom
from pipeline.planner.plan import Fragment
from pipeline.planner.state import Choices, Fate, OnChange
from tests.histories.documents import Net
from tests.histories.node import OWNER, loaded
from tests.histories.reference import Ledger, Wrong
from tests.histories.world import Deployment, Scene
from tests.histories.writers import Writers

Ledgers = dict[tuple[int, str], Ledger]
Begins = dict[tuple[int, str], dict[tuple[str, int], tuple[int, int]]]
"""By life and fragment: start position of a partition, and its end at that time."""
STOPS_WITHIN_S = 60.0
NONE_STOPPED: Final[Mapping[str, str]] = MappingProxyType({})
LOOKS_MAX = 5
ROUNDS_MAX = 4
"""A choice about an input may require a choice about a state."""
_ANSWER = re.compile(r"`--input (\w+)=(beginning|end)`")
_OFFER = re.compile(r"`--state (?:\w+=)?(rebuild|empty)`")


def offered(error: str) -> tuple[OnChange, ...]:
    """The choices about state in the error of a stopped lane."""
    return tuple(OnChange(answer) for answer in sorted(set(_OFFER.findall(error))))


Where = dict[tuple[str, int], tuple[int, int]]
"""Non-empty offset ranges by topic id and partition."""


@dataclass(frozen=True, slots=True)
class InputRanges:
    """Ranges that a fragment starts to read, and those that it leaves unread."""

    begins: Where
    leaves: Where
    topics: frozenset[str]
    """Topics that it starts to read, including empty ones."""


def announced(scene: Scene, comparison: Comparison, fragment: str) -> InputRanges:
    """The ranges of one fragment's inputs in `plan`."""
    begins: Where = {}
    leaves: Where = {}
    topics = set()
    for one in comparison.changes.announced:
        if one.fragment != fragment:
            continue
        left = one.fared is Fared.LEFT_UNREAD
        there = scene.kafka.topics.get(one.topic)
        topic_id = there.topic_id if there is not None else ""
        if not left:
            topics.add(str(one.topic))
        for partition, begin, end in one.ranges:
            if end > begin:
                (leaves if left else begins)[topic_id, partition] = int(begin), int(end)
    return InputRanges(begins, leaves, frozenset(topics))


def choices(comparison: Comparison, before: Choices, rng: Random) -> Choices:
    """The choices with the further required ones, drawn at random from the offered answers."""
    changes = comparison.changes
    named, inputs = dict(before.named), dict(before.inputs)
    for item in changes.fragments:
        if item.fate in (Fate.UNDECIDED, Fate.UNKNOWN):
            named[FragmentName(item.name)] = rng.choice((OnChange.REBUILD, OnChange.EMPTY))
    answers: dict[str, list[str]] = {}
    for problem in changes.problems:
        for stream, answer in _ANSWER.findall(problem.hint):
            answers.setdefault(stream, []).append(answer)
    for stream, offered in answers.items():
        inputs[StreamName(stream)] = InputFrom(rng.choice(sorted(set(offered))))
    return Choices(named=named, inputs=inputs)


def compared(
    scene: Scene, document: Document, rng: Random, chosen: Choices
) -> tuple[Comparison, Choices]:
    """Compare a document with the deployed network, with all required choices."""
    for _ in range(ROUNDS_MAX):
        comparison = apply.compare(document, OWNER, scene.servers, chosen)
        more = choices(comparison, chosen, rng)
        if more == chosen:
            break
        chosen = more
    return comparison, chosen


def read(net: Net) -> Document | None:
    """A document as `deploy` reads it; None if it is invalid."""
    try:
        network = loaded(net.text, tuple(sorted(net.schemas.items())))
    except DocumentError:
        return None
    schemas = {StreamName(name): text for name, text in net.schemas.items()}
    return Document("net.yaml", net.text, schemas, network)


@dataclass
class Accounts:
    """State of the reference: ledgers of fragments, choices, and writers of topics."""

    ledgers: Ledgers = field(default_factory=dict)
    begins: Begins = field(default_factory=dict)
    writers: Writers = field(default_factory=Writers)

    def carried_out(self, fragment: tuple[int, str], begins: Where, marker: CommitMarker) -> None:
        """Keep the start positions that a lane has taken over, of the version that it runs.

        A later deploy may have dropped them, if that lane has started late.
        """
        placed = {source.topic_id for source in marker.sources}
        mine = self.begins.setdefault(fragment, {})
        for key, where in begins.items():
            if key[0] in placed:
                mine.setdefault(key, where)


def deploy(
    scene: Scene,
    accounts: Accounts,
    net: Net,
    rng: Random,
    stopped: Mapping[str, str] = NONE_STOPPED,
) -> Iterator[Wrong | str]:
    """Deploy a document with random choices; yields wrong statements of `plan`.

    `stopped`: errors of stopped lanes, by fragment: one of the choices that they offer for their
    states is made.
    """
    found = {name: offers for name, text in stopped.items() if (offers := offered(text))}
    named = {FragmentName(name): rng.choice(offers) for name, offers in sorted(found.items())}
    document = read(net)
    if document is None:
        yield "the document is a mistake"
        return
    try:
        comparison, chosen, differences = _judged(scene, accounts, document, rng, named)
        comparison.check()
        at_ms = scene.servers.clock.now_ms()
        done = apply.deploy(comparison, scene.servers, lambda _: None)
    except MedusaError as error:
        yield f"refused: {error}"
        return
    scene.look_at_topics()
    versions = {str(record.fragment): int(record.version) for record in done.fragments}
    deployed = [(fragment, versions[fragment.name]) for fragment in comparison.plan.fragments]
    for fragment in accounts.writers.deployed(scene.kafka, scene.life, deployed):
        accounts.begins.get(fragment, {}).clear()  # its decisions have no effect
    for item in comparison.changes.fragments:
        ledger = accounts.ledgers.get((scene.life, item.name))
        if ledger is not None and item.fate in (Fate.REBUILD, Fate.EMPTY):
            ledger.choose(versions[item.name], item.fate.value)
    _remember(scene, accounts, comparison)
    begins = {str(f.name): dict(accounts.begins.get((scene.life, f.name), {})) for f, _ in deployed}
    deployment = Deployment(net, comparison.plan, _ids(scene), versions, at_ms, begins)
    key = scene.life, int(done.version)
    if known := scene.deployments.get(key):  # nothing was changed
        deployment = replace(deployment, at_ms=known.at_ms, begins=known.begins)
    scene.deployments[key] = deployment
    both = (*chosen.named.items(), *chosen.inputs.items())
    choices_text = ", ".join(f"{name}={choice.value}" for name, choice in both)
    yield f"version {done.version}{', chosen: ' if choices_text else ''}{choices_text}"
    yield from differences


def _judged(
    scene: Scene,
    accounts: Accounts,
    document: Document,
    rng: Random,
    named: Mapping[FragmentName, OnChange],
) -> tuple[Comparison, Choices, list[Wrong]]:
    """Comparison of a document, its choices, and the wrong statements of `plan`.

    The comparison is repeated if lanes have committed meanwhile, since its result is outdated.
    """
    scene.look()
    for _ in range(LOOKS_MAX):
        comparison, chosen = compared(scene, document, rng, Choices(named=named))
        differences = list(_compared(scene, accounts, comparison))
        if not differences or not scene.look():
            return comparison, chosen, differences
    return comparison, chosen, []


def _compared(scene: Scene, accounts: Accounts, comparison: Comparison) -> Iterator[Wrong]:
    """Compare `plan` with the expected ranges."""
    last = max((v for life, v in scene.deployments if life == scene.life), default=None)
    for fragment in comparison.plan.fragments:
        ledger = accounts.ledgers.get((scene.life, fragment.name))
        chosen = accounts.begins.get((scene.life, fragment.name), {})
        planned = announced(scene, comparison, fragment.name)
        is_late = (scene.life, str(fragment.name)) in accounts.writers.late
        if is_late or accounts.writers.others(scene.kafka, scene.life, fragment):
            yield from _differs(fragment, planned, _anew(scene, fragment, {}))
            continue
        if accounts.writers.is_due(scene.kafka, scene.life, fragment):
            yield from _differs(fragment, planned, _anew(scene, fragment, chosen))
            continue
        if accounts.writers.gives_up(scene.kafka, scene.life, fragment):
            chosen = {}  # it was decided for the other topic
        if ledger is None or not ledger.has_read:
            continue
        before = None if last is None else scene.deployments[scene.life, last]
        changed = before is None or not before.has(fragment, _ids(scene))
        expected = _expected(scene, ledger, fragment, chosen, changed=changed)
        yield from _differs(fragment, planned, expected)


def _ids(scene: Scene) -> dict[TopicName, str]:
    """Ids of all topics."""
    return {name: topic.topic_id for name, topic in scene.kafka.topics.items()}


def _differs(fragment: Fragment, planned: InputRanges, expected: InputRanges) -> Iterator[Wrong]:
    """Differences of `plan` from the expected ranges."""
    if planned.topics != expected.topics or planned.begins != expected.begins:
        text = (
            f"begins {expected.topics} {expected.begins},"
            f" plan says {planned.topics} {planned.begins}"
        )
        yield Wrong("begins", fragment.name, text)
    if planned.leaves != expected.leaves:
        text = f"leaves {expected.leaves}, plan says {planned.leaves}"
        yield Wrong("leaves", fragment.name, text)


def _anew(scene: Scene, fragment: Fragment, chosen: Where) -> InputRanges:
    """The ranges of a fragment that writes to the topic of other writers: all records.

    `chosen`: decided start positions.
    """
    known = frozenset(topic_id for topic_id, _ in chosen)
    return InputRanges(*_begun(scene, fragment, known))


def _begun(
    scene: Scene, fragment: Fragment, known: frozenset[str]
) -> tuple[Where, Where, frozenset[str]]:
    """All records of the topics that a fragment starts to read, and these topics."""
    kafka = scene.kafka
    ids = {i.topic: there.topic_id for i in fragment.inputs if (there := kafka.topics.get(i.topic))}
    topics = {i.topic for i in fragment.inputs if ids.get(i.topic) not in known}
    begins = {
        (ids[topic], number): (int(partition.start), int(partition.end()))
        for topic in topics & ids.keys()
        for number, partition in enumerate(kafka.topics[topic].partitions)
        if partition.end() > partition.start
    }
    return begins, {}, frozenset(map(str, topics))


def _expected(
    scene: Scene, ledger: Ledger, fragment: Fragment, chosen: Where, *, changed: bool
) -> InputRanges:
    """The ranges that a fragment will start to read and leave, by its ledger.

    `changed`: whether its deployed version differs; else the left ranges were reported before.
    """
    kafka = scene.kafka
    known = ledger.known | {topic_id for topic_id, _ in chosen}
    begins, _, topics = _begun(scene, fragment, frozenset(known))
    ids = {kafka.topics[i.topic].topic_id for i in fragment.inputs if i.topic in kafka.topics}
    existing = {there.topic_id for there in kafka.topics.values()}
    left = (ledger.positioned & existing) - ids if changed else frozenset[str]()
    leaves = {
        (topic_id, partition): (begin, end)
        for topic_id in left
        for partition, begin, end in ledger.rest(topic_id)
        if end > begin
    }
    return InputRanges(begins, leaves, topics)


def _remember(scene: Scene, accounts: Accounts, comparison: Comparison) -> None:
    """Store the start positions of fragments in new inputs.

    A choice applies while its fragment reads that topic, under any name, and once a marker had
    positions there: they stay in it when the topic is left.
    """
    topics, begins = scene.kafka.topics, accounts.begins
    read_by = {
        str(fragment.name): {topics[stream.topic].topic_id for stream in fragment.inputs}
        for fragment in comparison.plan.fragments
    }
    for (life, name), mine in begins.items():
        ledger = accounts.ledgers.get((life, name))
        anew = (life, name) in accounts.writers.due
        placed = ledger.placed if ledger is not None and not anew else set()
        kept = read_by.get(name, set()) | placed
        for key in [key for key in mine if key[0] not in kept]:
            if life == scene.life:
                del mine[key]
    for name, found in comparison.changes.begins.items():
        fragment = scene.life, str(name)
        mine = begins.setdefault(fragment, {})
        for one in found:
            topic_id = topics[one.topic].topic_id
            passed = accounts.writers.passed_over.setdefault(fragment, set())
            (passed.add if one.passes_over else passed.discard)(topic_id)
            mine |= {(topic_id, p): (int(begin), int(end)) for p, begin, end in one.ranges}


def destroy(scene: Scene, net: Net) -> str:
    """Destroy a network, and wait for its end; returns the message of a refusal."""
    try:
        doomed = remove.doomed(NetworkId(OWNER, NetworkName(net.name)), scene.servers)
        deadline = Deadline.after(scene.servers.clock, STOPS_WITHIN_S, "destroying")
        remove.destroy(doomed, scene.servers, deadline, lambda _: None)
    except MedusaError as error:
        return f"refused: {error}"
    scene.destroyed()
    return ""
