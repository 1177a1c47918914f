"""Deploys of a history: what `plan` asks for is drawn here, and what it says is compared here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Final

from pipeline.clock import Deadline
from pipeline.deploy import apply, remove
from pipeline.deploy.apply import Comparison
from pipeline.deploy.documents import Document
from pipeline.errors import DocumentError, MedusaError
from pipeline.ids import FragmentName, NetworkName, StreamName, TopicName
from pipeline.planner.inputs import Fared, InputFrom
from pipeline.planner.plan import Fragment
from pipeline.planner.state import Choices, Fate, OnChange
from tests.histories.documents import NETWORK, Net
from tests.histories.node import OWNER, loaded
from tests.histories.reference import Ledger, Wrong
from tests.histories.taken import Writers
from tests.histories.world import Deployment, World

Ledgers = dict[tuple[int, str], Ledger]
Begins = dict[tuple[int, str], dict[tuple[str, int], tuple[int, int]]]
"""By life and fragment: where it begins to read a partition, and where that ended then."""
STOPS_WITHIN_S = 60.0
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})
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


def said(world: World, comparison: Comparison, fragment: str) -> Said:
    """What `plan` says of one fragment's inputs."""
    begins: Where = {}
    leaves: Where = {}
    topics = set()
    for one in comparison.changes.announced:
        if one.fragment != fragment:
            continue
        left = one.fared is Fared.LEFT_UNREAD
        there = world.kafka.topics.get(one.topic)
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
    world: World, document: Document, rng: Random, chosen: Choices
) -> tuple[Comparison, Choices]:
    """A document beside what is there, with everything chosen that has to be."""
    for _ in range(ROUNDS_MAX):
        comparison = apply.compare(document, OWNER, world.servers, chosen)
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
    world: World,
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
        comparison, chosen = compared(world, document, rng, Choices(named=named))
        comparison.check()
        differences = list(_compared(world, accounts, comparison))
        done = apply.deploy(comparison, world.servers, lambda _: None)
    except MedusaError as error:
        yield f"refused: {error}"
        return
    world.deployments[world.life, int(done.version)] = Deployment(net, comparison.plan, _ids(world))
    versions = {str(record.fragment): int(record.version) for record in done.fragments}
    deployed = [(fragment, versions[fragment.name]) for fragment in comparison.plan.fragments]
    accounts.writers.deployed(world.kafka, world.life, deployed)
    for item in comparison.changes.fragments:
        ledger = accounts.ledgers.get((world.life, item.name))
        if ledger is not None and item.fate in (Fate.REBUILD, Fate.EMPTY):
            ledger.choose(versions[item.name], item.fate.value)
    _remember(world, accounts, comparison)
    both = (*chosen.named.items(), *chosen.inputs.items())
    told = ", ".join(f"{name}={choice.value}" for name, choice in both)
    yield f"version {done.version}{', chosen: ' if told else ''}{told}"
    yield from differences


def _compared(world: World, accounts: Accounts, comparison: Comparison) -> Iterator[Wrong]:
    """What `plan` says, against what will be."""
    last = max((v for life, v in world.deployments if life == world.life), default=None)
    for fragment in comparison.plan.fragments:
        ledger = accounts.ledgers.get((world.life, fragment.name))
        chosen = accounts.begins.get((world.life, fragment.name), {})
        told = said(world, comparison, fragment.name)
        if accounts.writers.others(world.kafka, world.life, fragment):
            yield from _differs(fragment, told, _anew(world, fragment, {}))
            continue
        if (world.life, fragment.name) in accounts.writers.due:
            yield from _differs(fragment, told, _anew(world, fragment, chosen))
            continue
        if ledger is None or not ledger.has_read:
            continue
        before = None if last is None else world.deployments[world.life, last]
        changed = before is None or not before.has(fragment, _ids(world))
        due = _due(world, ledger, fragment, chosen, changed=changed)
        yield from _differs(fragment, told, due)


def _ids(world: World) -> dict[TopicName, str]:
    """Of all topics that there are."""
    return {name: topic.topic_id for name, topic in world.kafka.topics.items()}


def _differs(fragment: Fragment, told: Said, due: Said) -> Iterator[Wrong]:
    """What `plan` says otherwise than it is."""
    if told.topics != due.topics or told.begins != due.begins:
        text = f"begins {due.topics} {due.begins}, plan says {told.topics} {told.begins}"
        yield Wrong("begins", fragment.name, text)
    if told.leaves != due.leaves:
        text = f"leaves {due.leaves}, plan says {told.leaves}"
        yield Wrong("leaves", fragment.name, text)


def _anew(world: World, fragment: Fragment, chosen: Where) -> Said:
    """What a fragment begins to read that writes beside the results of others: all there is.

    `chosen`: where it was decided already.
    """
    known = frozenset(topic_id for topic_id, _ in chosen)
    return Said(*_begun(world, fragment, known))


def _begun(
    world: World, fragment: Fragment, known: frozenset[str]
) -> tuple[Where, Where, frozenset[str]]:
    """All that the topics hold which a fragment begins to read, and which these are."""
    kafka = world.kafka
    ids = {i.topic: there.topic_id for i in fragment.inputs if (there := kafka.topics.get(i.topic))}
    topics = {i.topic for i in fragment.inputs if ids.get(i.topic) not in known}
    begins = {
        (ids[topic], partition): (int(there.start(partition)), int(there.end(partition)))
        for topic in topics & ids.keys()
        for there in (kafka.topics[topic],)
        for partition in range(len(there.partitions))
        if there.end(partition) > there.start(partition)
    }
    return begins, {}, frozenset(map(str, topics))


def _due(world: World, ledger: Ledger, fragment: Fragment, chosen: Where, *, changed: bool) -> Said:
    """What a fragment will begin to read and leave, by the account of what it has read.

    `changed`: whether it was not deployed like this; else what it leaves was said before.
    """
    kafka = world.kafka
    known = ledger.known | {topic_id for topic_id, _ in chosen}
    begins, _, topics = _begun(world, fragment, frozenset(known))
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


def _remember(world: World, accounts: Accounts, comparison: Comparison) -> None:
    """Keep where fragments begin to read what they have never read.

    A choice holds as long as its fragment is to read that topic, under whatever name, and once a
    marker has positions there.
    """
    topics, begins = world.kafka.topics, accounts.begins
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
            if life == world.life:
                del mine[key]
    for fragment, found in comparison.changes.begins.items():
        mine = begins.setdefault((world.life, str(fragment)), {})
        for one in found:
            topic_id = topics[one.topic].topic_id
            passed = accounts.writers.passed_over.setdefault((world.life, str(fragment)), set())
            (passed.add if one.passes_over else passed.discard)(topic_id)
            mine |= {(topic_id, p): (int(begin), int(end)) for p, begin, end in one.ranges}


def destroy(world: World) -> str:
    """Destroy the network, and wait until it is gone; what was said if it could not be."""
    name = NetworkName(NETWORK)
    try:
        doomed = remove.doomed(name, world.servers)
        deadline = Deadline.after(world.clock, STOPS_WITHIN_S, "destroying")
        remove.destroy(doomed, world.servers, deadline, lambda _: None)
    except MedusaError as error:
        return f"refused: {error}"
    for root in world.folders.values():  # as the command does, here on every machine
        for fragment in [name for name in root if name.startswith(f"{NETWORK}.")]:
            del root[fragment]
    world.life += 1
    return ""
