from decimal import Decimal

import pytest

from pipeline.errors import DocumentError
from pipeline.testing.document import (
    DeadLettersWritten,
    ExpectWritten,
    SendWritten,
    TestWritten,
    read,
)
from pipeline.testing.steps import Advance, Settle, Wait

VERBS = "send, advance, wait, settle, expect, dead_letters"


def written(steps: str, head: str = "") -> TestWritten:
    """A test with some steps; the first line of them is line 2."""
    return read(f"{head}steps:\n{steps}", "t.yaml")


def errors(steps: str, head: str = "") -> list[str]:
    """The errors, each with its line."""
    with pytest.raises(DocumentError) as caught:
        written(steps, head)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def test_every_kind_of_step() -> None:
    """In their order."""
    found = written(
        "  - {send: cars, records: [{car: a}], key: car, partition: 3, timestamp: 1970-01-01}\n"
        "  - {advance: 2026-01-01T00:01:00Z}\n"
        "  - {wait: 90s}\n"
        "  - settle\n"
        "  - {expect: tolls, file: tolls.jsonl, order: exact}\n"
        "  - dead_letters: [{reason: late}]\n"
    )
    send, advance, wait, settle, expect, dead_letters = found.steps
    assert isinstance(send, SendWritten)
    assert (send.stream.value, send.partition, send.timestamp_ms) == ("cars", 3, 0)
    assert isinstance(advance, Advance)
    assert wait == Wait(90_000)
    assert settle == Settle()
    assert isinstance(expect, ExpectWritten)
    assert expect.in_order
    assert expect.records.file is not None
    assert isinstance(dead_letters, DeadLettersWritten)
    assert dead_letters.letters[0].value == {"reason": "late"}


def test_values_have_the_types_of_yaml() -> None:
    """Numbers, texts and null; quoted values are texts; all digits are kept."""
    found = written(
        "  - send: s\n"
        "    records:\n"
        "      - {i: 12, f: 1.10, e: 1e3, t: '12', b: true, n: null, w: yes,\n"
        "         at: 2026-01-01, l: [1]}\n"
    )
    (send,) = found.steps
    assert isinstance(send, SendWritten)
    assert send.records.written[0].value == {
        "i": 12,
        "f": Decimal("1.10"),
        "e": Decimal(1000),
        "t": "12",
        "b": True,
        "n": None,
        "w": "yes",
        "at": "2026-01-01",
        "l": [1],
    }


def test_a_place_inside_a_record_has_its_line() -> None:
    """An error of a field is reported at the field."""
    (send,) = written("  - send: s\n    records:\n      - a: 1\n        b: {c: 2}\n").steps
    assert isinstance(send, SendWritten)
    record = send.records.written[0]
    assert [record.line_of(path) for path in ("", "/a", "/b/c", "/new")] == [4, 4, 5, 4]


def test_the_head_names_network_and_schemas() -> None:
    """Both may be omitted."""
    found = written("  - settle\n", "network: n.yaml\nschemas: {cars-value: car.avsc}\n")
    assert found.network is not None
    assert found.network.value == "n.yaml"
    assert [(subject, file.value) for subject, file in found.schemas] == [
        ("cars-value", "car.avsc")
    ]
    assert written("  - settle\n").network is None


def test_a_test_without_steps_is_refused() -> None:
    """It could not fail."""
    with pytest.raises(DocumentError, match="steps is empty: such a test cannot fail"):
        read("steps: []\n", "t.yaml")


def test_all_errors_are_reported_at_once() -> None:
    """Each with its line."""
    assert errors(
        "  - {send: s}\n"
        "  - {send: s, records: [], file: f}\n"
        "  - {advance: noon}\n"
        "  - {wait: 2d}\n"
        "  - {settle: now}\n"
        "  - {expect: s, records: [], oder: exact}\n"
        "  - {send: s, expect: s}\n"
        "  - sleep\n"
        "  - {dead_letters: late}\n"
    ) == [
        "2: the step send needs either records or file",
        "3: the step send needs either records or file",
        "4: advance: 'noon' is no time",
        "5: wait: at most 1d",
        "6: settle stands alone: `- settle`",
        "7: the step expect has no key oder",
        f"8: a step has one of {VERBS}; this has send and expect",
        f"9: a step is settle, or begins with one of: {VERBS}",
        "10: dead_letters of the step dead_letters must be a list",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the document is empty"),
        ("- settle\n", "a test is a mapping with steps"),
        ("network: n.yaml\n", "the test needs steps"),
        ("steps: settle\n", "steps must be a list"),
        ("steps: [settle]\nnetwrk: x\n", "the test has no key netwrk"),
        ("steps: [\n", "not YAML"),
    ],
)
def test_a_document_that_is_no_test(text: str, message: str) -> None:
    """It is reported in a sentence."""
    with pytest.raises(DocumentError) as caught:
        read(text, "t.yaml")
    assert caught.value.problems[0].message.startswith(message)
