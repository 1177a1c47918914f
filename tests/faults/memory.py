"""Runs cases in memory: `python -m tests.faults.memory --help`.

No servers and no faults: Spark alone, one session for all cases, with random batch boundaries. The
checks are those after faults, except those of a broker's log files. Undecodable records are left
out: the inspection of each batch would take most of the time.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from random import Random

from brokers.records import KafkaRecord
from pipeline.cli.project import load_project
from pipeline.deploy.documents import read_document
from pipeline.ids import Millis, StreamName
from pipeline.testing.check import Checked, streams_of
from pipeline.testing.lane import StartQuery
from pipeline.testing.network import NetworkUnderTest
from pipeline.testing.records import Schemas
from pipeline.testing.session import open_tests
from schemas import avro, codec, wire
from tests.faults.case import Case, Fed
from tests.faults.cases import CASES
from tests.faults.feed import Encoder, encoders
from tests.faults.history import Fate, Place, Sent
from tests.faults.judge import History, Verdict, judge
from tests.faults.reads import Reads
from tests.faults.topics import topics_of

START_MS = Millis(1_767_225_600_000)
"""The first event time, and the time of producers' clocks."""
RECORDS = 400
BATCHES = 2
"""Two are enough for state to be stored and loaded, and for records to be late."""


class _Run:
    """One case in memory. Close it."""

    def __init__(self, case: Case, folder: Path, start: StartQuery) -> None:
        for name, text in _files(case):
            (folder / name).write_text(text, encoding="utf-8")
        document = read_document(folder / "network.yaml", lambda _: None)
        schemas = Schemas()
        self._case = case
        self._encode = encoders(case, case.name, lambda _, text: schemas.id_of(_own(text)))
        self._streams = streams_of(document.network, ())
        writers = {StreamName(name): _texts(one) for name, one in self._encode.items()}
        partitions = {self._encode[s.name].topic: s.partitions for s in case.streams}
        checked = Checked(self._streams, schemas, writers, partitions, ())
        self._network = NetworkUnderTest(checked, start)
        self._kafka = self._network._kafka
        self._sent: list[Sent] = []

    def send(self, records: Sequence[Fed]) -> None:
        """Add records, and compute them in one batch."""
        for fed in records:
            self._put(fed, self._encode[fed.stream])
        self._network._run()

    def verdict(self) -> Verdict:
        """Check the results of all sent records."""
        fragments = tuple(  # lanes in memory have no forks
            replace(topics_of(fragment), tentative=None)
            for fragment in self._streams.plan.fragments
        )
        topics = sorted({topic for f in fragments for topic in (*f.all, *f.reads)})
        records = tuple(
            record
            for topic in topics
            for partition in self._kafka.topics[topic].partitions
            for record in partition.read(0, partition.end())
        )
        reads = Reads(logs=(), committed=records, uncommitted=records, observed=())
        history = History(tuple(self._sent), fragments, reads)
        return judge(self._case, self._case.name, history, self._decode)

    def close(self) -> None:
        """Stop its queries."""
        self._network.close()

    def _put(self, fed: Fed, encoder: Encoder) -> None:
        value, timestamp_ms = encoder.value(fed), START_MS + fed.clock_ms
        topic, partition = encoder.topic, fed.partition
        record = self._kafka.append(
            topic, fed.key, value, timestamp_ms=timestamp_ms, partition=partition
        )
        self._sent.append(
            Sent(
                place=Place(topic, partition, record.offset),
                stream=StreamName(fed.stream),
                fate=fed.fate,
                key=fed.key,
                value=value,
                timestamp_ms=timestamp_ms,
                fields=None if fed.fate is Fate.BAD else fed.fields,
            )
        )

    def _decode(self, record: KafkaRecord) -> Mapping[str, object]:
        framed = wire.split(record.value)
        if not isinstance(framed, wire.Framed):
            return {"undecodable": repr(record)}
        schema = avro.parse(self._network._schemas[framed.schema])
        found: dict[str, object] = codec.decode(schema, schema, framed.body)
        return found


def run(case: Case, random: Random, folder: Path, start: StartQuery) -> Verdict:
    """Process records of a case in a few batches, the last with the closing records; check."""
    readable = (fed for fed in case.feed(random, START_MS) if fed.fate is not Fate.BAD)
    records = list(islice(readable, RECORDS))
    cuts = [0, *sorted(random.sample(range(1, RECORDS), BATCHES - 1)), RECORDS]
    done_ms = max(case.event_ms(fed) or START_MS for fed in records)
    one = _Run(case, folder, start)
    try:
        *before, last = (records[begin:end] for begin, end in pairwise(cuts))
        for batch in before:
            one.send(batch)
        one.send([*last, *case.close(done_ms + 2 * case.settle_ms)])
        return one.verdict()
    finally:
        one.close()


def _files(case: Case) -> Iterator[tuple[str, str]]:
    yield "network.yaml", case.document.replace("{name}", case.name)
    yield from case.files.items()
    for stream in case.streams:
        yield f"{stream.name}.avsc", json.dumps(stream.schema)


def _own(text: str) -> str:
    return avro.parse(text).text


def _texts(encoder: Encoder) -> tuple[str, ...]:
    return encoder.schema.schema.text, encoder.older.schema.text


def main(arguments: Sequence[str]) -> int:
    """Run the selected cases; returns 0 if all results were exact."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.memory", description="Networks in memory, judged exactly."
    )
    add = parser.add_argument
    add("--cases", nargs="+", default=[*CASES], choices=CASES, metavar="CASE")
    add("--rounds", type=int, default=1, help="how often each (%(default)s)")
    add("--seed", type=int, default=1, help="of the first round (%(default)s)")
    options = parser.parse_args(arguments)
    wrong = 0
    with open_tests(load_project({}, os.environ, Path.cwd()).settings) as start:
        for seed in range(options.seed, options.seed + options.rounds):
            for name in options.cases:
                began = time.monotonic()
                with tempfile.TemporaryDirectory(prefix="medusa-memory-") as folder:
                    verdict = run(CASES[name], Random(seed), Path(folder), start)
                _say(f"{verdict}, seed {seed}, {time.monotonic() - began:.1f} s")
                if verdict.findings or not verdict.expected:
                    _say(verdict.words())
                    wrong += 1
    return 1 if wrong else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
