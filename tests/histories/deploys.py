"""Deploys of a history: what `plan` asks for is drawn here, and what it says is compared here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from pipeline.clock import Deadline
from pipeline.deploy import apply, remove
from pipeline.deploy.apply import Comparison
from pipeline.deploy.documents import Document
from pipeline.errors import DocumentError, MedusaError
from pipeline.ids import FragmentName, NetworkName, StreamName
from pipeline.planner.inputs import Fared, InputFrom
from pipeline.planner.state import Choices, Fate, OnChange
from tests.histories.documents import NETWORK, TOPICS, Net
from tests.histories.node import OWNER, loaded
from tests.histories.reference import Ledger, Wrong
from tests.histories.world import Deployment, World

Ledgers = dict[tuple[int, str], Ledger]
Begins = dict[tuple[int, str], dict[tuple[str, int], tuple[int, int]]]
"""By life and fragment: where it begins to read a partition, and where that ended then."""
STOPS_WITHIN_S = 60.0


ROUNDS_MAX = 4
"""What is chosen for an input may ask for a choice about a state."""
_ANSWER = re.compile(r"`--input (\w+)=(beginning|end)`")


@dataclass(frozen=True, slots=True)
class Said:
    """Which topics a fragment begins to read, and which it leaves before their end."""

    begins: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()


def said(comparison: Comparison, fragment: str) -> Said:
    """What `plan` says of one fragment's inputs."""
    mine = [one for one in comparison.changes.announced if one.fragment == fragment]
    left = {one.topic for one in mine if one.fared is Fared.LEFT_UNREAD}
    return Said(frozenset({one.topic for one in mine} - left), frozenset(left))


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


def compared(world: World, document: Document, rng: Random) -> tuple[Comparison, Choices]:
    """A document beside what is there, with everything chosen that has to be."""
    chosen = Choices()
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


def deploy(
    world: World, ledgers: Ledgers, begins: Begins, net: Net, rng: Random
) -> Iterator[Wrong | str]:
    """Deploy a document, choosing what has to be chosen; what is wrong with what was said."""
    document = read(net)
    if document is None:
        yield "the document is a mistake"
        return
    try:
        comparison, chosen = compared(world, document, rng)
        comparison.check()
        differences = list(_compared(world, ledgers, begins, comparison))
        done = apply.deploy(comparison, world.servers, lambda _: None)
    except MedusaError as error:
        yield f"refused: {error}"
        return
    world.deployments[world.life, int(done.version)] = Deployment(net, comparison.plan)
    for item in comparison.changes.fragments:
        ledger = ledgers.get((world.life, item.name))
        if ledger is not None and item.fate in (Fate.REBUILD, Fate.EMPTY):
            ledger.choice = item.fate.value
    _remember(world, begins, comparison)
    both = (*chosen.named.items(), *chosen.inputs.items())
    told = ", ".join(f"{name}={choice.value}" for name, choice in both)
    yield f"version {done.version}{', chosen: ' if told else ''}{told}"
    yield from differences


def _compared(
    world: World, ledgers: Ledgers, decided: Begins, comparison: Comparison
) -> Iterator[Wrong]:
    """What `plan` says, against what will be."""
    for fragment in comparison.plan.fragments:
        ledger = ledgers.get((world.life, fragment.name))
        if ledger is None or not ledger.has_read:
            continue
        ids = {
            stream.topic: topic.topic_id if (topic := world.kafka.topics.get(stream.topic)) else ""
            for stream in fragment.inputs
        }
        known = ledger.known | {
            topic_id for topic_id, _ in decided.get((world.life, fragment.name), {})
        }
        begins = {name for name, topic_id in ids.items() if topic_id not in known}
        leaves = {
            topic_id
            for topic_id in ledger.active - set(ids.values())
            if any(one.topic_id == topic_id for one in world.kafka.topics.values())
            and any(
                ledger.read.get((topic_id, partition), 0) < len(records)
                for partition, records in enumerate(world.kafka.by_id[topic_id].partitions)
            )
        }
        names = {one.topic_id: str(name) for name, one in world.kafka.topics.items()}
        due = Said(frozenset(begins), frozenset(names[one] for one in leaves))
        told = said(comparison, fragment.name)
        if told.begins != due.begins:
            text = f"begins {sorted(due.begins)}, plan says {sorted(told.begins)}"
            yield Wrong("begins", fragment.name, text)
        external = {one for one in told.leaves if one in TOPICS}  # others may be written on
        last = max(v for life, v in world.deployments if life == world.life)
        if world.deployments[world.life, last].has(fragment):
            continue  # what it leaves was said by the deploy that changed it
        if not external <= due.leaves <= told.leaves:
            text = f"leaves {sorted(due.leaves)} before the end, plan says {sorted(told.leaves)}"
            yield Wrong("leaves", fragment.name, text)


def _remember(world: World, begins: Begins, comparison: Comparison) -> None:
    """Keep where fragments begin to read what they have never read.

    A choice holds as long as its fragment is to read that topic, under whatever name.
    """
    topics = world.kafka.topics
    wanted = {
        str(fragment.name): {topics[stream.topic].topic_id for stream in fragment.inputs}
        for fragment in comparison.plan.fragments
    }
    for (life, name), mine in begins.items():
        for key in [key for key in mine if key[0] not in wanted.get(name, set())]:
            if life == world.life:
                del mine[key]
    for fragment, found in comparison.changes.begins.items():
        mine = begins.setdefault((world.life, str(fragment)), {})
        for one in found:
            topic_id = topics[one.topic].topic_id
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
