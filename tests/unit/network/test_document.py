"""Documents: their networks, and all their errors."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import DocumentError, Problem
from pipeline.ids import Millis
from pipeline.nearest import nearest_first
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.join import Join, TimeBound
from pipeline.network.boxes.traits import KINDS
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.network.document import SchemaReference, SchemaText, load, schema_references
from pipeline.network.model import Network, Silence, StartAt
from tests.profiles import examples

LoadText = Callable[..., Network]
ProblemsOf = Callable[..., list[str]]

DATA = Path(__file__).parents[2] / "data" / "network"

HEAD = """\
network: n
streams:
  s: {topic: cars, schema: s.avsc, event_time: seen_at}
"""


def _kinds(nearest: str = "") -> str:
    """The kinds of boxes, the most similar one first."""
    return ", ".join(nearest_first(nearest, tuple(KINDS)))


def test_the_toll_network_loads(load_text: LoadText, tolls_text: str) -> None:
    """The document that the project template, the demo and the tests share."""
    network = load_text(tolls_text)
    boxes = {str(box.name): box for box in network.boxes}
    assert list(boxes) == [
        "average_speed",
        "traffic_volume",
        "tolls",
        "moving",
        "toll_notifications",
        "stopped",
        "tow_trucks",
        "tow_dispatch",
    ]
    assert {name: box.key for name, box in boxes.items() if box.key} == {
        "average_speed": ("road", "segment"),
        "traffic_volume": ("road", "segment"),
        "tolls": ("road", "segment", "minute"),
        "toll_notifications": ("segment",),
        "tow_dispatch": ("location",),
    }
    assert {name: box.event_time_column for name, box in boxes.items()} == {
        "average_speed": "window_end",
        "traffic_volume": "window_end",
        "tolls": "minute",
        "moving": "seen_at",
        "toll_notifications": "seen_at",
        "stopped": "seen_at",
        "tow_trucks": "seen_at",
        "tow_dispatch": None,
    }
    tolls, notifications, dispatch = (
        boxes[n] for n in ("tolls", "toll_notifications", "tow_dispatch")
    )
    assert isinstance(tolls, Join)
    assert isinstance(notifications, Join)
    assert isinstance(dispatch, Join)
    assert tolls.bound == TimeBound(0, 0)
    assert notifications.bound == TimeBound(0, 60_000)
    assert dispatch.bound == TimeBound(-300_000, 300_000)
    assert [str(c) for c in tolls.columns] == [
        "road STRING NOT NULL",
        "segment INT NOT NULL",
        "minute TIMESTAMP NOT NULL",
        "toll DOUBLE NOT NULL",
    ]


def test_one_line_changes_every_window_of_the_toll_network(
    load_text: LoadText, tolls_text: str
) -> None:
    """The demo uses windows of ten seconds; the join follows."""
    network = load_text(tolls_text.replace("window: 1m", "window: 10s"))
    boxes = {str(box.name): box for box in network.boxes}
    speed, notifications = boxes["average_speed"], boxes["toll_notifications"]
    assert isinstance(speed, Aggregate)
    assert isinstance(notifications, Join)
    assert speed.window == TumblingWindow(10_000, 0)
    assert notifications.bound == TimeBound(0, 10_000)


def test_defaults(load_text: LoadText) -> None:
    """Values of omitted keys."""
    network = load_text(HEAD + "boxes: {b: {filter: s, where: speed > 0}}\n")
    (stream,) = network.streams
    assert (stream.lateness_ms, stream.idle_after_ms, stream.ahead_ms) == (5_000, 180_000, 3600_000)
    assert (stream.silence, stream.start) == (Silence.IDLE, StartAt("earliest"))
    assert (stream.partitions, stream.subject) == (4, "cars-value")
    assert (network.partitions, network.replication) == (4, 1)
    assert (network.retention_ms, network.auto_create) == (604_800_000, True)
    assert network.outputs == ()


def test_every_key_can_be_set(load_text: LoadText) -> None:
    """Each key that has a default."""
    network = load_text(
        """\
network: n
partitions: 8
replication: 3
retention: 1d
auto_create: false
streams:
  s:
    topic: cars
    subject: the-subject
    event_time: seen_at + INTERVAL 1 SECOND
    lateness: 0s
    idle_after: 1m
    silence: missing
    start: 2024-01-31T12:00:00.5+01:00
    ahead: 0s
    partitions: 2
boxes:
  b: {map: s, select: {car: car, fast: speed > 100}, key: [car]}
outputs:
  b: {topic: fast-cars, partitions: 1}
"""
    )
    (stream,) = network.streams
    assert (stream.lateness_ms, stream.idle_after_ms, stream.ahead_ms) == (0, 60_000, 0)
    assert (stream.silence, stream.partitions) == (Silence.MISSING, 2)
    assert stream.start == StartAt("time", Millis(1_706_698_800_500))
    assert stream.subject == "the-subject"
    assert stream.event_time_column is None
    assert (network.partitions, network.replication) == (8, 3)
    assert (network.retention_ms, network.auto_create) == (86_400_000, False)
    assert [(o.stream, o.topic, o.partitions) for o in network.outputs] == [("b", "fast-cars", 1)]
    assert network.boxes[0].key == ("car",)


def test_boxes_can_be_written_in_any_order(load_text: LoadText) -> None:
    """The network has them in the order in which data flows."""
    network = load_text(
        HEAD
        + """\
boxes:
  c: {filter: b, where: speed > 2}
  b: {filter: a, where: speed > 1}
  a: {filter: s, where: speed > 0}
"""
    )
    assert [box.name for box in network.boxes] == ["a", "b", "c"]


def test_schema_references_have_their_lines(tolls_text: str) -> None:
    """For the caller to fetch."""
    text = tolls_text.replace("schema: schemas/sighting.avsc", "subject: sightings")
    assert [(r.stream, r.kind, r.value) for r in schema_references(tolls_text, "f")] == [
        ("sightings", "path", "schemas/sighting.avsc")
    ]
    assert [(r.kind, r.value) for r in schema_references(text, "f")] == [("subject", "sightings")]
    assert schema_references("{", "f") == ()
    assert schema_references("streams: 5", "f") == ()


def test_syntax_errors_are_reported_also_behind_an_unknown_input(problems_of: ProblemsOf) -> None:
    """In every kind of box and on a loop; unresolvable names cause no errors there."""
    found = problems_of(
        HEAD
        + """\
boxes:
  f: {filter: sss, where: speed >}
  m: {map: f, select: {a: 1 +, b: whatever}}
  g: {aggregate: m, window: 1m, by: {c: (1}, compute: {d: sum(}}
  j: {join: {left: g, right: s, on: [car], within: left.a BETWEEN}, select: {e: "'x"}}
  l: {filter: l, where: 1 2}
"""
    )
    assert [text.partition(":")[2][:22] for text in found if "does not parse" in text] == [
        "5, box f, column where",
        "6, box m, column a: th",
        "7, box g, column c: th",
        "7, box g, column d: th",
        "8, box j, column withi",
        "8, box j, column e: th",
        "9, box l, column where",
    ]
    assert len(found) == len("fmcdjel") + len(["no stream sss", "a loop"])


def test_a_syntax_error_of_an_event_time_is_reported_also_without_a_schema() -> None:
    """Both errors are reported at once."""
    text = HEAD.replace("seen_at", "seen_at +") + "boxes: {b: {filter: s, where: speed > 0}}\n"
    with pytest.raises(DocumentError) as caught:
        load(text, "network.yaml", {})
    messages = [problem.message for problem in caught.value.problems]
    assert messages[0] == "schema of stream s is missing: s.avsc"
    assert messages[1].startswith("event_time of stream s: the expression does not parse")
    assert len(messages) == 2


def test_ten_errors_are_all_reported(problems_of: ProblemsOf) -> None:
    """Each with file, line, box, column and the alternatives; the text is a golden file."""
    found = problems_of((DATA / "ten-mistakes.yaml").read_text())
    assert len(found) >= 10
    golden = (DATA / "ten-mistakes.txt").read_text().replace("KINDS", _kinds("filtre"))
    assert "\n".join(found) + "\n" == golden


@pytest.mark.parametrize(
    ("rest", "problems"),
    [
        ("boxes: 5\n", ["network.yaml:4: boxes of the document must be a mapping"]),
        ("boxes: {}\n", ["network.yaml:4: boxes names no box"]),
        ("boxes:\n", ["network.yaml:4: boxes of the document has no value"]),
        ("boxes: {b: 5}\n", ["network.yaml:4, box b: box b must be a mapping"]),
        (
            "boxes: {B-2: {filter: s, where: speed > 0}}\n",
            [
                (
                    "network.yaml:4: 'B-2' is no name for a box\n    hint: small letters, "
                    "digits and _, beginning with a letter, at most 63"
                )
            ],
        ),
        (
            "boxes: {s: {filter: s, where: speed > 0}}\n",
            ["network.yaml:4, box s: s is both a stream and a box"],
        ),
        (
            "boxes: {b: {filter: s, map: s, where: speed > 0}}\n",
            ["network.yaml:4, box b: box b is both filter and map"],
        ),
        (
            "boxes: {b: {fliter: s, where: speed > 0}}\n",
            [
                (
                    "network.yaml:4, box b: box b does not say what it is: there is no kind of box "
                    f"called fliter (there is: {_kinds('filter')})"
                )
            ],
        ),
        (
            "boxes: {b: {explode: s}}\n",
            [
                (
                    "network.yaml:4, box b: box b does not say what it is: there is no kind of box "
                    f"called explode (there is: {_kinds()})"
                )
            ],
        ),
        (
            "boxes: {b: {where: speed > 0, joined: s}}\n",
            [
                (
                    "network.yaml:4, box b: box b does not say what it is: there is no kind of box "
                    f"called joined (there is: {_kinds('join')})"
                )
            ],
        ),
        (
            "boxes: {b: {}}\n",
            [(f"network.yaml:4, box b: box b does not say what it is (there is: {_kinds()})")],
        ),
        (
            "boxes: {b: {filter: s, wher: speed > 0}}\n",
            [
                "network.yaml:4, box b: box b needs where",
                (
                    "network.yaml:4, box b: box b has no key wher (there is: where, key, filter, "
                    "dead_letters, pace, placement, reliability, priority, availability)"
                ),
            ],
        ),
        (
            "boxes:\n  a: {filter: b, where: speed > 0}\n  b: {filter: a, where: spied > 0}\n",
            ["network.yaml:5, box a: a loop: a → b → a"],
        ),
        (
            (
                "boxes: {b: {filter: s, where: speed > 0}}\noutputs: "
                "{c: {topic: x}, s: {topic: y}, b: z}\n"
            ),
            [
                "network.yaml:5: output c names no box (there is: b)",
                (
                    "network.yaml:5: output s is a stream from outside: "
                    "it has a topic already (there is: b)"
                ),
                "network.yaml:5: output b must be a mapping\n    hint: write {topic: NAME}",
            ],
        ),
        (
            (
                "partitions: many\nretention: 5s\nauto_create: "
                "maybe\nboxes: {b: {filter: s, where: speed > 0}}\n"
            ),
            [
                (
                    "network.yaml:4: partitions of the document must be a "
                    "whole number from 1 to 10000, not 'many'"
                ),
                "network.yaml:5: retention of the document must be at least 1m",
                (
                    "network.yaml:6: auto_create of the document cannot "
                    "be 'maybe' (there is: true, false)"
                ),
            ],
        ),
    ],
)
def test_errors_outside_of_boxes(rest: str, problems: list[str], problems_of: ProblemsOf) -> None:
    """Keys, names, loops, outputs, values out of range."""
    assert problems_of(HEAD + rest) == problems


@pytest.mark.parametrize(
    ("stream", "problems"),
    [
        (
            "{topic: cars, event_time: seen_at}",
            [
                (
                    "stream s needs schema\n    hint: schema: a file with the Avro "
                    "schema, or subject: its name in the registry"
                )
            ],
        ),
        (
            "{topic: cars, schema: a, subject: b, event_time: seen_at}",
            ["stream s has both schema and subject\n    hint: keep one"],
        ),
        ("{schema: a, event_time: seen_at}", ["stream s needs topic"]),
        ("{topic: cars, schema: a}", ["stream s needs event_time"]),
        (
            "{topic: cars, schema: a, event_time: speed}",
            [
                (
                    "event_time of stream s: needs a TIMESTAMP, but this is DOUBLE\n    "
                    "hint: timestamp_millis(…) makes a time of a number"
                )
            ],
        ),
        (
            "{topic: cars, schema: a, event_time: seen_at, start: yesterday}",
            [
                (
                    "start of stream s cannot be 'yesterday' (there is: earliest, "
                    "latest, a time such as 2024-01-31T12:00:00Z)"
                )
            ],
        ),
        (
            "{topic: cars, schema: a, event_time: seen_at, start: 2024-01-31T12:00:00}",
            [
                (
                    "start of stream s cannot be '2024-01-31T12:00:00' (there is: "
                    "earliest, latest, a time such as 2024-01-31T12:00:00Z)"
                )
            ],
        ),
        (
            "{topic: cars, schema: a, event_time: seen_at, silence: mising}",
            ["silence of stream s cannot be 'mising' (there is: missing, idle)"],
        ),
        ("cars", ["stream s must be a mapping"]),
    ],
)
def test_errors_in_a_stream(stream: str, problems: list[str], problems_of: ProblemsOf) -> None:
    """Required keys of a stream; the box that reads it has no further errors."""
    text = f"network: n\nstreams:\n  s: {stream}\nboxes: {{b: {{filter: s, where: speed > 0}}}}\n"
    assert problems_of(text) == [f"network.yaml:3: {problem}" for problem in problems]


def test_a_missing_schema_is_reported_once(tolls_text: str) -> None:
    """And nothing about the boxes that read the stream."""
    with pytest.raises(DocumentError) as caught:
        load(tolls_text, "network.yaml", {})
    (problem,) = caught.value.problems
    assert str(problem) == (
        "network.yaml:12: schema of stream sightings is missing: schemas/sighting.avsc"
    )


def test_the_reason_of_the_caller_is_passed_on(tolls_text: str) -> None:
    """The caller has the error of the registry; the line is the document's."""
    (reference,) = schema_references(tolls_text, "network.yaml")
    reason = Problem("the registry has no subject x", choices=("y",))
    with pytest.raises(DocumentError) as caught:
        load(tolls_text, "network.yaml", {reference: reason})
    assert [str(p) for p in caught.value.problems] == [
        "network.yaml:12: the registry has no subject x (there is: y)"
    ]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is not JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
        ('"string"', "the schema of a stream must be an Avro record"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_an_invalid_schema(schema: str, message: str, tolls_text: str) -> None:
    """The message names the file of the schema."""
    (reference,) = schema_references(tolls_text, "network.yaml")
    with pytest.raises(DocumentError) as caught:
        load(tolls_text, "network.yaml", {reference: SchemaText(schema, "sighting.avsc")})
    (problem,) = caught.value.problems
    assert "schema of stream sightings, sighting.avsc" in problem.message
    assert message in problem.message


def test_a_wrong_event_time_hides_no_other_error(problems_of: ProblemsOf) -> None:
    """The columns are known, so expressions are still checked."""
    text = """\
network: n
streams: {s: {topic: cars, schema: a, event_time: seen}}
boxes:
  b: {filter: s, where: sped > 0}
  j: {join: {left: s, right: s, on: [car], within: left.seen >= right.seen}, select: [left.car]}
"""
    assert [p.split(" (")[0] for p in problems_of(text)] == [
        "network.yaml:2: event_time of stream s: there is no column seen",
        "network.yaml:4, box b, column where: there is no column sped",
    ]


def test_a_document_that_is_no_mapping(problems_of: ProblemsOf) -> None:
    """Lists, words and an empty document."""
    assert problems_of("[1]") == [
        "network.yaml:1: a network document is a mapping that begins with network: NAME"
    ]
    assert problems_of("") == ["network.yaml:1: the document is empty"]
    assert problems_of("a: [")[0].startswith("network.yaml:1: not YAML: ")
    assert problems_of("{}") == [
        "network.yaml:1: the document needs network",
        "network.yaml:1: the document needs streams",
        "network.yaml:1: the document needs boxes",
    ]


MUTATION_WORDS = [
    "", "[]", "{}", "null", "- a", "5", "left", "*", "&a", "'", '"', "aggregate", "s", "0s", "\t",
    ":", "x" * 300, "1e999", "window", "(", "NULL", "{a: b}", "[a, [b]]", "è",
]  # fmt: skip


def loaded_or_problems(load_text: LoadText, text: str) -> Network | tuple[Problem, ...]:
    """A network, or the problems; anything else is raised."""
    try:
        return load_text(text)
    except DocumentError as error:
        return error.problems


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_a_mutated_document_loads_or_is_explained(
    load_text: LoadText, tolls_text: str, seed: int, changes: int
) -> None:
    """For any cut, duplicated or overwritten part: a network or a DocumentError, nothing else."""
    chance = random.Random(seed)
    text = tolls_text
    for _ in range(changes):
        at = chance.randrange(len(text) + 1)
        to = min(len(text), at + chance.choice([0, 1, 3, 10, 40]))
        text = text[:at] + chance.choice([*MUTATION_WORDS, text[at:to] * 2]) + text[to:]
    outcome = loaded_or_problems(load_text, text)
    assert outcome
    if isinstance(outcome, tuple):
        assert all(problem.file == "network.yaml" for problem in outcome)
    else:
        assert outcome.boxes


def test_references_without_a_stream_are_keys() -> None:
    """Equal references are one key, so that the caller can fetch each schema once."""
    text = "streams: {s: {topic: t, schema: a.avsc}}"
    (reference,) = schema_references(text, "f")
    assert (reference,) == schema_references(text, "g")
    assert reference == SchemaReference(reference.stream, kind="path", value="a.avsc", line=1)
