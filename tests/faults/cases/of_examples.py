"""Cases of the example projects, with their producers and references."""

import importlib.resources
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import yaml

from pipeline.deploy.documents import read_document
from pipeline.examples.example import DOCUMENT, Example
from pipeline.network.model import Network
from pipeline.reference.inputs import Due, InputRecord, Inputs, Place, Refusal
from tests.faults.case import AvroSchema, Case, Fed, Stream
from tests.faults.history import Expected, Fate
from tests.faults.history import Place as HistoryPlace
from tests.faults.letters import Accepted
from tests.faults.traffic import BAD_SHARE, POISON
from tests.faults.values import Columns

PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Inner:
    """A stream between fragments that is not an output."""

    columns: Columns
    due: Callable[[Inputs, Network], Iterable[Due]]


@dataclass(frozen=True, slots=True)
class Played:
    """An example with its generator of records.

    Args:
        schemas: files of the project, by stream.
        feed: endless valid records, as for a case; `_spoilt` makes some of them invalid.
        close: as for a case.
        inner: streams that are not outputs, by box.
        settle_ms: as for a case.
        per_second: as for a case.
        older: files of the project with schemas that some producers still use, by stream.
        files: of the project that its document refers to, besides schemas.
    """

    example: Example
    schemas: Mapping[str, str]
    feed: Callable[[Random, int], Iterator[Fed]]
    close: Callable[[int], Iterable[Fed]]
    inner: Mapping[str, Inner]
    settle_ms: int
    per_second: int = 200
    older: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def case_of(played: Played) -> Case:
    """The case of an example."""
    example = played.example
    project = Path(str(importlib.resources.files("pipeline.projects") / example.name))
    network = read_document(project / DOCUMENT, lambda _: None).network
    references = {str(result.box): result.due for result in example.results}
    references |= {box: inner.due for box, inner in played.inner.items()}

    def reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
        inputs = _inputs(accepted, network)
        return {
            box: [Expected(due.row, due.at_ms) for due in of_box(inputs, network)]
            for box, of_box in references.items()
        }

    def schema(file: str) -> AvroSchema:
        found: AvroSchema = json.loads((project / file).read_text(encoding="utf-8"))
        return found

    return Case(
        name=example.name,
        document=_document(project),
        streams=tuple(
            Stream(
                stream.name,
                schema(played.schemas[stream.name]),
                stream.event_time_column or "",
                PARTITIONS,
                schema(played.older[stream.name]) if stream.name in played.older else None,
            )
            for stream in network.streams
        ),
        feed=lambda random, start_ms: _spoilt(random, played.feed(random, start_ms), network),
        close=lambda at_ms: (replace(fed, fate=Fate.CLOSING) for fed in played.close(at_ms)),
        reference=reference,
        columns={
            **{box: inner.columns for box, inner in played.inner.items()},
            **{str(one.box): Columns(one.columns, one.identity) for one in example.results},
        },
        settle_ms=played.settle_ms,
        per_second=played.per_second,
        files={name: (project / name).read_text(encoding="utf-8") for name in played.files},
    )


def partition_of(key: bytes) -> int:
    """The partition of a key."""
    return sum(key) % PARTITIONS


def _document(project: Path) -> str:
    """The project's document, with a placeholder as network name and separate inputs."""
    text = (project / DOCUMENT).read_text(encoding="utf-8")
    document = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - builds texts only; "on" stays a word
    document["network"] = "{name}"
    for name, stream in document["streams"].items():
        stream |= {
            "topic": f"{{name}}-{name}",
            "schema": f"{name}.avsc",
            "silence": "missing",
            "partitions": PARTITIONS,
        }
    for name, output in document["outputs"].items():
        output["topic"] = f"{{name}}-{name}"
    return json.dumps(document)


def _inputs(accepted: Accepted, network: Network) -> Inputs:
    """Sent and refused records in the example's form, without closing records."""
    records_of: dict[str, list[InputRecord]] = {stream.name: [] for stream in network.streams}
    for record in sorted(accepted.sent, key=lambda record: record.place):
        if record.fate is not Fate.CLOSING:
            records_of[record.stream].append(InputRecord(_place(record.place), record.fields))
    return Inputs(
        {name: tuple(records) for name, records in records_of.items()},
        tuple(
            Refusal(letter.fragment, _place(letter.origin), letter.port, letter.reason, "")
            for letter in accepted.letters
            if letter.origin is not None
        ),
    )


def _place(place: HistoryPlace) -> Place:
    return Place(place.topic, place.partition, place.offset)


def _spoilt(random: Random, records: Iterator[Fed], network: Network) -> Iterator[Fed]:
    """A producer's records, some made invalid; those beyond the lateness may be late."""
    streams = {str(stream.name): stream for stream in network.streams}
    newest: dict[tuple[str, int], int] = {}
    for fed in records:
        if random.random() < BAD_SHARE:
            yield replace(fed, fate=Fate.BAD, spoil=random.choice(POISON))
            continue
        stream = streams[fed.stream]
        at_ms = fed.fields[stream.event_time_column or ""]
        if not isinstance(at_ms, int):
            raise TypeError(f"event time is an instant in ms, not {at_ms!r}")
        place = (fed.stream, fed.partition)
        newest[place] = max(newest.get(place, at_ms), at_ms)
        behind = newest[place] - at_ms > stream.lateness_ms
        yield replace(fed, fate=Fate.MAYBE_LATE if behind else Fate.GOOD)
