import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.catalogue import Context
from connectors.conformance.sources import SourceWorld, check_source
from connectors.files.records import RECORD_MAX
from connectors.files.source import FilesSource, make
from connectors.source import Limit, Position, Refused, Row, SourceChangedError, SplitId
from pipeline.errors import InputError, UnavailableError
from pipeline.ids import Millis
from schemas.avro import parse
from schemas.json_value import Json, JsonObject
from tests.unit.connectors.twins import NAME, TickingClock

SCHEMA = parse(
    '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "text", "type": ["null", "string"], "default": null}]}'
)
ALL = Limit(1_000, 1_000_000)
JSONL: JsonObject = {"folder": ".", "pattern": "*.jsonl", "format": "jsonl"}
CSV: JsonObject = {"folder": ".", "pattern": "*.csv", "format": "csv"}


class LaterClock(TickingClock):
    """A clock that is ahead by so many seconds."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__()
        self.ahead_s = ahead_s

    def now_ms(self) -> Millis:
        """The time of the machine, since that of files is compared with it."""
        return Millis(int((time.time() + self.ahead_s) * 1_000))


def source(below: Path, options: JsonObject, ahead_s: float = 0.0, **others: Json) -> FilesSource:
    """A source of files."""
    return make({**options, **others}, Context(below, LaterClock(ahead_s), SCHEMA, NAME))


class Follower:
    """Reads all that is there, each time by a new source."""

    def __init__(self, make_source: Callable[[], FilesSource]) -> None:
        self._make = make_source
        self.positions: dict[SplitId, Position] = {}

    def read(self) -> list[Row | Refused]:
        """What is new."""
        reader, found = self._make(), list[Row | Refused]()
        for split in reader.splits(dict(self.positions)):
            chunk = reader.read(split, self.positions.get(split), ALL)
            found.extend(chunk.records)
            self.positions[split] = chunk.position
        return found

    def numbers(self) -> list[object]:
        """The numbers of new records."""
        return [dict(one.fields)["n"] for one in self.read() if isinstance(one, Row)]


def line(n: int) -> str:
    """A line of JSON."""
    return f'{{"n":{n},"text":"row {n}"}}\n'


def test_json_lines_fulfil_the_contract(tmp_path: Path) -> None:
    """With blank lines, bad ones, and a last one without an end; other files are not read."""
    good = [line(n) for n in range(4)]
    bad = ["[1]\n", "{\n", '{"n":\n']
    (tmp_path / "a.jsonl").write_text("".join([good[0], "\n", *bad[:2], good[1]]))
    (tmp_path / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + (good[2] + bad[2]).encode() + b"\xff\n")
    (tmp_path / "c.jsonl").write_text(good[3].rstrip())
    (tmp_path / "d.txt").write_text(good[0])
    (tmp_path / ".hidden.jsonl").write_text(good[0])
    expected = [one.rstrip("\n").encode() for one in (*good, *bad)] + [b"\xff"]
    clock = LaterClock(60)
    check_source(SourceWorld(lambda: source(tmp_path, JSONL, 60), tuple(expected), SCHEMA, clock))


def test_csv_fulfils_the_contract(tmp_path: Path) -> None:
    """With quotes over two lines, a broken one, a column too many, and one too few."""
    rows = ['1,"a, b"', '2,"two\nlines"', "3,", '4,"x"y', "5,a,b", "6"]
    (tmp_path / "a.csv").write_text("n,text\n" + "".join(f"{one}\n" for one in rows))
    (tmp_path / "b.csv").write_text("text,n\r\nx,7\r\n", newline="")
    expected = [*(one.encode() for one in rows), b"x,7"]
    check_source(
        SourceWorld(lambda: source(tmp_path, CSV, 60), tuple(expected), SCHEMA, LaterClock(60))
    )


def test_what_csv_says(tmp_path: Path) -> None:
    """Typed by the schema; the reason, the file and the line of what is no record."""
    text = 'n,text\n1,"two\nlines"\n2,\n3,a,b\n4,"x"y\nmany,x\n'
    (tmp_path / "a.csv").write_text(text)
    found = Follower(lambda: source(tmp_path, CSV, 60)).read()
    rows = [dict(one.fields) for one in found if isinstance(one, Row)]
    assert rows == [
        {"n": 1, "text": "two\nlines"},
        {"n": 2, "text": None},
        {"n": "many", "text": "x"},
    ]
    assert [(one.reason, one.place) for one in found if isinstance(one, Refused)] == [
        ("columns", "file a.csv, line 5"),
        ("broken", "file a.csv, line 6"),
    ]


def test_a_quote_that_is_never_closed_costs_one_line(tmp_path: Path) -> None:
    """The lines behind it are read."""
    (tmp_path / "a.csv").write_text('n,text\n1,"open\n2,b\n3,c\n')
    found = Follower(lambda: source(tmp_path, CSV, 60)).read()
    assert [type(one) for one in found] == [Refused, Row, Row]


def test_another_encoding_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    """A letter has the bytes."""
    (tmp_path / "a.csv").write_bytes("n,text\n1,Zürich\n2,Bern\n".encode("latin-1"))
    first, second = Follower(lambda: source(tmp_path, CSV, 60)).read()
    assert isinstance(first, Refused)
    assert (first.reason, first.raw) == ("encoding", "1,Zürich".encode("latin-1"))
    assert isinstance(second, Row)
    named = Follower(lambda: source(tmp_path, CSV, 60, encoding="latin-1")).read()
    assert isinstance(named[0], Row)
    assert named[0].fields["text"] == "Zürich"


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    """A line is read when it is whole, or when the file was not changed for a while."""
    path, follower = tmp_path / "a.jsonl", Follower(lambda: source(tmp_path, JSONL))
    path.write_text(line(1) + line(2)[:5])
    assert follower.numbers() == [1]
    assert follower.numbers() == []
    with path.open("a") as file:
        file.write(line(2)[5:] + line(3).rstrip())
    assert follower.numbers() == [2]
    later = Follower(lambda: source(tmp_path, JSONL, 60))
    later.positions = follower.positions
    assert later.numbers() == [3]
    assert later.numbers() == []


def test_a_rotated_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Under a name that does not fit the pattern, and the new one from its beginning."""
    path, follower = tmp_path / "a.jsonl", Follower(lambda: source(tmp_path, JSONL))
    path.write_text(line(1))
    assert follower.numbers() == [1]
    with path.open("a") as file:
        file.write(line(2))
    path.rename(tmp_path / "a.jsonl.1")
    path.write_text(line(3))
    assert sorted(map(str, follower.numbers())) == ["2", "3"]
    assert follower.numbers() == []


def test_a_file_that_gets_the_number_of_another_one_is_another_one(tmp_path: Path) -> None:
    """Its first bytes differ; a file that becomes shorter, or other, stops the source."""
    path, follower = tmp_path / "a.jsonl", Follower(lambda: source(tmp_path, JSONL))
    path.write_text(line(1) + line(2))
    assert follower.numbers() == [1, 2]
    number = path.stat().st_ino
    path.write_text(line(7) + line(8) + line(9))  # the same number, as after a removal
    assert path.stat().st_ino == number
    assert follower.numbers() == [7, 8, 9]
    assert len(follower.positions) == 2
    os.truncate(path, len(line(7)) + 3)
    with pytest.raises(SourceChangedError, match="fewer than"):
        follower.numbers()


def test_a_rotation_between_listing_and_reading_is_no_change(tmp_path: Path) -> None:
    """The file is found under its new name in the next round."""
    path, follower = tmp_path / "a.jsonl", Follower(lambda: source(tmp_path, JSONL))
    path.write_text(line(1))
    assert follower.numbers() == [1]
    with path.open("a") as file:
        file.write(line(2))
    reader = source(tmp_path, JSONL)
    (split,) = reader.splits(dict(follower.positions))
    path.rename(tmp_path / "a.jsonl.1")
    path.write_text(line(3))
    chunk = reader.read(split, follower.positions[split], ALL)
    assert (chunk.records, chunk.more) == ((), True)
    assert chunk.position == follower.positions[split]
    path.unlink()
    assert reader.read(split, None, ALL).more
    assert follower.numbers() == [2]


def test_a_short_file_with_the_number_of_a_long_one_is_read(tmp_path: Path) -> None:
    """Once it does not grow any more, since a few bytes do not tell which file it is."""
    path, follower = tmp_path / "a.jsonl", Follower(lambda: source(tmp_path, JSONL))
    path.write_text(line(1) + line(2))
    assert follower.numbers() == [1, 2]
    path.write_text('{"n":7}\n')
    assert follower.numbers() == []
    later = Follower(lambda: source(tmp_path, JSONL, 60))
    later.positions = follower.positions
    assert later.numbers() == [7]


def test_a_change_before_the_position_is_noticed(tmp_path: Path) -> None:
    """What was read is compared at its end, too."""
    path, follower = tmp_path / "a.jsonl", Follower(lambda: source(tmp_path, JSONL))
    path.write_text("".join(line(n) for n in range(100, 200)))
    assert len(follower.numbers()) == 100
    content = path.read_text().replace("row 199", "row XYZ") + line(5)
    path.write_text(content)
    with pytest.raises(SourceChangedError, match="not what it contains now"):
        follower.numbers()


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    """Its letter has the first bytes; a long one without an end is awaited."""
    path = tmp_path / "a.jsonl"
    follower = Follower(lambda: source(tmp_path, JSONL))
    path.write_text(line(1) + "x" * (2 * RECORD_MAX))
    assert follower.numbers() == [1]
    assert follower.read() == []
    with path.open("a") as file:
        file.write("\n" + line(2))
    (refused,) = follower.read()
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.place) == ("too-long", "file a.jsonl, line 2")
    assert len(refused.raw) < 20_000
    assert follower.numbers() == [2]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """It may be mounted later, so the source is asked again."""
    with pytest.raises(UnavailableError, match="no such folder"):
        source(tmp_path, JSONL, folder="missing").splits({})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"colour": "red"}, "no such option"),
        ({"format": "xml"}, "one of jsonl, csv"),
        ({"pattern": ""}, "a text"),
        ({"delimiter": ";;"}, "one character"),
        ({"encoding": "utf-16"}, "one of utf-8"),
        ({"settled": "soon"}, "a duration"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: JsonObject, says: str) -> None:
    """With what would be right."""
    with pytest.raises(InputError, match=says):
        source(tmp_path, {**JSONL, **options})


def test_a_missing_option_is_named(tmp_path: Path) -> None:
    """Folder, pattern and format have no defaults."""
    with pytest.raises(InputError, match="missing"):
        make({"folder": "."}, Context(tmp_path, TickingClock(), None, NAME))
