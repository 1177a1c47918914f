import pytest
from hypothesis import given

from pipeline.network.drawing.picture import DrawnBox, Inflow, Part, Picture
from pipeline.network.drawing.text import LINES, PLAIN, Signs, as_text
from tests.unit.network.drawing.pictures import parts


def read_back(text: str, part: Part) -> dict[str, set[str]]:
    """The inputs of each line's box, from the drawn lines alone."""
    names = [inflow.name for inflow in part.inflows] + [box.name for box in part.boxes]
    running: dict[int, str] = {}
    found: dict[str, set[str]] = {}
    for name, line in zip(names, text.splitlines()[1:], strict=True):
        rails = line[2 : line.index(f"  {name}")]
        mark = max(rails.find(LINES.stream), rails.find(LINES.box))
        found[name] = {running.pop(mark)} if mark in running else set()
        column = mark - 2
        while column >= 0 and rails[column + 1] == LINES.across:
            if rails[column] in {LINES.branch, LINES.cross}:
                found[name].add(running[column])
            elif rails[column] in {LINES.turn, LINES.meet}:
                found[name].add(running.pop(column))
            column -= 2
        on = {LINES.down, LINES.branch, LINES.cross}
        running = {c: stream for c, stream in running.items() if rails[c : c + 1] in on}
        running[mark] = name
    return found


@given(parts())
def test_lines_lead_from_each_box_to_its_inputs(part: Part) -> None:
    """For any network, a reader finds exactly its streams again."""
    reads = {inflow.name: set[str]() for inflow in part.inflows}
    reads |= {box.name: set(box.inputs) for box in part.boxes}
    assert read_back(as_text(Picture("n", (part,)), LINES), part) == reads


@given(parts())
def test_plain_text_is_the_same_drawing_in_ascii(part: Part) -> None:
    """Character by character."""
    signs: dict[str, str | int | None] = {
        LINES.stream: PLAIN.stream,
        LINES.box: PLAIN.box,
        LINES.arrow: PLAIN.arrow,
    }
    for name in ("down", "across", "turn", "branch", "meet", "cross"):
        signs[getattr(LINES, name)] = getattr(PLAIN, name)
    plain = as_text(Picture("n", (part,)), PLAIN)
    assert plain.isascii()
    assert as_text(Picture("n", (part,)), LINES).translate(str.maketrans(signs)) == plain


def test_an_unread_stream_is_not_directly_above_another_box() -> None:
    """A box is never right below something that it does not read."""
    part = Part(
        (Inflow("a", "ta"), Inflow("b", "tb")),
        (
            DrawnBox("x", "map", ("a",), ("out",)),
            DrawnBox("y", "map", ("b",), ()),
            DrawnBox("z", "join", ("y", "y"), ()),
        ),
    )
    assert as_text(Picture("n", (part,)), LINES).splitlines() == [
        "network n",
        "  ○    a  [ta]",
        "  │ ○  b  [tb]",
        "  ● │  x  map a      → [out]",
        "    ●  y  map b",
        "    ●  z  join y, y",
    ]


@pytest.mark.parametrize("signs", [LINES, PLAIN])
def test_a_named_group_has_a_border(signs: Signs) -> None:
    """As wide as its contents."""
    part = Part((Inflow("a", "topic-of-a"),), (DrawnBox("x", "map", ("a",), ()),), "fragment x")
    lines = as_text(Picture("n", (part,)), signs).splitlines()
    assert lines[:2] == ["network n", ""]
    assert "fragment x" in lines[2]
    assert len(lines[2]) == len(lines[-1]) == max(map(len, lines))
