"""Deploys of a history: what `plan` asks for is drawn here, and what it says is compared here."""

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
"""By life and fragment: where it begins to read a partition, and where that ended then."""
STOPS_WITHIN_S = 60.0
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})
LOOKS_MAX = 5
ROUNDS_MAX = 4
"""What is chosen for an input may ask for a choice about a state."""
_ANSWER = re.compile(r"`--input (\w+)=(beginning|end)`")
_OFFER = re.compile(r"`--state (?:\w+=)?(rebuild|empty)`")


def offered(error: str) -> tuple[OnChange, ...]:
    """What the error of a lane that has stopped offers for its state."""
    return tuple(OnChange(answer) for answer in sorted(set(_OFFER.findall(error))))


Where = dict[tuple[str, int], tuple[int, int]]
"""Records by topic id and partition: from where to where; without those that are none."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a fragment begins to read, and what it leaves unread, range by range."""

    begins: Where
    leaves: Where
    topics: frozenset[str]
    """Those that it begins to read, although they may hold nothing yet."""


def said(scene: Scene, comparison: Comparison, fragment: str) -> Said:
    """What `plan` says of one fragment's inputs."""
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
    return Said(begins, leaves, frozenset(topics))


def choices(comparison: Comparison, before: Choices, rng: Random) -> Choices:
    """What has to be chosen beside what was chosen, drawn from the answers that are offered."""
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
    """A document beside what is there, with everything chosen that has to be."""
    for _ in range(ROUNDS_MAX):
        comparison = apply.compare(document, OWNER, scene.servers, chosen)
        more = choices(comparison, chosen, rng)
        if more == chosen:
            break
        chosen = more
    return comparison, chosen


def read(net: Net) -> Document | None:
    """A document as `deploy` reads it; None if it is a mistake."""
    try:
        network = loaded(net.text, tuple(sorted(net.schemas.items())))
    except DocumentError:
        return None
    schemas = {StreamName(name): text for name, text in net.schemas.items()}
    return Document("net.yaml", net.text, schemas, network)


@dataclass
class Accounts:
    """What the reference keeps: of each fragment, of what was chosen, and of who writes what."""

    ledgers: Ledgers = field(default_factory=dict)
    begins: Begins = field(default_factory=dict)
    writers: Writers = field(default_factory=Writers)


def deploy(
    scene: Scene,
    accounts: Accounts,
    net: Net,
    rng: Random,
    stopped: Mapping[str, str] = NOBODY,
) -> Iterator[Wrong | str]:
    """Deploy a document, choosing what has to be chosen; what is wrong with what was said.

    `stopped`: the errors of the lanes that have stopped, by fragment: one of the answers that they
    offer for their states is chosen.
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
        accounts.begins.get(fragment, {}).clear()  # of what was decided there nothing happens
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
    told = ", ".join(f"{name}={choice.value}" for name, choice in both)
    yield f"version {done.version}{', chosen: ' if told else ''}{told}"
    yield from differences


def _judged(
    scene: Scene,
    accounts: Accounts,
    document: Document,
    rng: Random,
    named: Mapping[FragmentName, OnChange],
) -> tuple[Comparison, Choices, list[Wrong]]:
    """A document beside what is there, what was chosen for it, and what is said wrongly.

    What is said while lanes go on cannot be judged: it is compared again then.
    """
    scene.look()
    for _ in range(LOOKS_MAX):
        comparison, chosen = compared(scene, document, rng, Choices(named=named))
        differences = list(_compared(scene, accounts, comparison))
        if not differences or not scene.look():
            return comparison, chosen, differences
    return comparison, chosen, []


def _compared(scene: Scene, accounts: Accounts, comparison: Comparison) -> Iterator[Wrong]:
    """What `plan` says, against what will be."""
    last = max((v for life, v in scene.deployments if life == scene.life), default=None)
    for fragment in comparison.plan.fragments:
        ledger = accounts.ledgers.get((scene.life, fragment.name))
        chosen = accounts.begins.get((scene.life, fragment.name), {})
        told = said(scene, comparison, fragment.name)
        if accounts.writers.others(scene.kafka, scene.life, fragment):
            yield from _differs(fragment, told, _anew(scene, fragment, {}))
            continue
        if accounts.writers.is_due(scene.kafka, scene.life, fragment):
            yield from _differs(fragment, told, _anew(scene, fragment, chosen))
            continue
        if ledger is None or not ledger.has_read:
            continue
        before = None if last is None else scene.deployments[scene.life, last]
        changed = before is None or not before.has(fragment, _ids(scene))
        due = _due(scene, ledger, fragment, chosen, changed=changed)
        yield from _differs(fragment, told, due)


def _ids(scene: Scene) -> dict[TopicName, str]:
    """Of all topics that there are."""
    return {name: topic.topic_id for name, topic in scene.kafka.topics.items()}


def _differs(fragment: Fragment, told: Said, due: Said) -> Iterator[Wrong]:
    """What `plan` says otherwise than it is."""
    if told.topics != due.topics or told.begins != due.begins:
        text = f"begins {due.topics} {due.begins}, plan says {told.topics} {told.begins}"
        yield Wrong("begins", fragment.name, text)
    if told.leaves != due.leaves:
        text = f"leaves {due.leaves}, plan says {told.leaves}"
        yield Wrong("leaves", fragment.name, text)


def _anew(scene: Scene, fragment: Fragment, chosen: Where) -> Said:
    """What a fragment begins to read that writes beside the results of others: all there is.

    `chosen`: where it was decided already.
    """
    known = frozenset(topic_id for topic_id, _ in chosen)
    return Said(*_begun(scene, fragment, known))


def _begun(
    scene: Scene, fragment: Fragment, known: frozenset[str]
) -> tuple[Where, Where, frozenset[str]]:
    """All that the topics hold which a fragment begins to read, and which these are."""
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


def _due(scene: Scene, ledger: Ledger, fragment: Fragment, chosen: Where, *, changed: bool) -> Said:
    """What a fragment will begin to read and leave, by the account of what it has read.

    `changed`: whether it was not deployed like this; else what it leaves was said before.
    """
    kafka = scene.kafka
    known = ledger.known | {topic_id for topic_id, _ in chosen}
    begins, _, topics = _begun(scene, fragment, frozenset(known))
    ids = {kafka.topics[i.topic].topic_id for i in fragment.inputs if i.topic in kafka.topics}
    alive = {there.topic_id for there in kafka.topics.values()}
    left = (ledger.positioned & alive) - ids if changed else frozenset[str]()
    leaves = {
        (topic_id, partition): (begin, end)
        for topic_id in left
        for partition, begin, end in ledger.rest(topic_id)
        if end > begin
    }
    return Said(begins, leaves, topics)


def _remember(scene: Scene, accounts: Accounts, comparison: Comparison) -> None:
    """Keep where fragments begin to read what they have never read.

    A choice holds as long as its fragment is to read that topic, under whatever name, and once a
    marker has positions there.
    """
    topics, begins = scene.kafka.topics, accounts.begins
    wanted = {
        str(fragment.name): {topics[stream.topic].topic_id for stream in fragment.inputs}
        for fragment in comparison.plan.fragments
    }
    for (life, name), mine in begins.items():
        ledger = accounts.ledgers.get((life, name))
        anew = (life, name) in accounts.writers.due
        placed = ledger.positioned if ledger is not None and not anew else set()
        kept = wanted.get(name, set()) | placed
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
    """Destroy a network, and wait until it is gone; what was said if it could not be."""
    try:
        doomed = remove.doomed(NetworkId(OWNER, NetworkName(net.name)), scene.servers)
        deadline = Deadline.after(scene.servers.clock, STOPS_WITHIN_S, "destroying")
        remove.destroy(doomed, scene.servers, deadline, lambda _: None)
    except MedusaError as error:
        return f"refused: {error}"
    scene.destroyed()
    return ""
