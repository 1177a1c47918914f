from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from connectors.postgresql.changes import Folded, apply, folded
from connectors.sink import Change, Removal, Result
from pipeline.ids import Offset

Rows = dict[object, tuple[str, object]]
"""Per key the id and the text of a row."""
PLACE = (0, Offset(0))


def result(n: int, id_: str, text: str, *, corrects: bool) -> Result:
    """A row."""
    return Result({"n": n, "text": text}, *PLACE, id_, corrects)


changes = st.lists(
    st.one_of(
        st.builds(
            result,
            st.integers(0, 3),
            st.sampled_from("abcd"),
            st.sampled_from("xyz"),
            corrects=st.booleans(),
        ),
        st.builds(lambda id_: Removal(*PLACE, id_), st.sampled_from("abcd")),
    ),
    max_size=12,
)
keys = st.sampled_from([(), ("n",)])


def put(rows: Rows, row: Result, key: Sequence[str]) -> None:
    """A row takes the place of that with its key."""
    value = tuple(row.fields[name] for name in key) if key else row.id
    rows[value] = (row.id, row.fields["text"])


def remove(rows: Rows, id_: str) -> None:
    """The rows of an id are gone."""
    for value in [value for value, (held, _) in rows.items() if held == id_]:
        del rows[value]


def one_by_one(rows: Rows, sequence: Sequence[Change], key: Sequence[str]) -> Rows:
    """What a table has after changes that are made one after the other."""
    found = dict(rows)
    for change in sequence:
        if isinstance(change, Removal) or change.corrects:
            remove(found, change.id)
        if isinstance(change, Result):
            put(found, change, key)
    return found


def at_once(rows: Rows, folds: Sequence[Folded], key: Sequence[str]) -> Rows:
    """What a table has after two statements for each of them."""
    found = dict(rows)
    for what in folds:
        for id_ in what.removed:
            remove(found, id_)
        for row in what.rows:
            put(found, row, key)
    return found


@example(
    [],
    [
        result(0, "a", "x", corrects=False),
        result(1, "a", "x", corrects=False),
        Removal(*PLACE, "a"),
    ],
    ("n",),
)
@example(
    [result(1, "b", "x", corrects=False)],
    [result(1, "a", "x", corrects=False), Removal(*PLACE, "a")],
    ("n",),
)
@given(changes, changes, keys)
def test_folded_changes_are_those_made_one_by_one(
    before: list[Change], batch: list[Change], key: tuple[str, ...]
) -> None:
    """Whatever the table has before; no two rows of a statement have one key."""
    table = one_by_one({}, before, key)
    found = folded(batch, key)
    assert at_once(table, found, key) == one_by_one(table, batch, key)
    assert all(len(at_once({}, [Folded((), one.rows)], key)) == len(one.rows) for one in found)
    assert len(found) == 1 or key


@given(st.lists(st.booleans(), max_size=40))
def test_all_but_the_refused_changes_are_made_in_their_order(fits: list[bool]) -> None:
    """However many are refused."""
    rows = [Result({"fits": one}, 0, Offset(n), f"{n}") for n, one in enumerate(fits)]
    made: list[Change] = []

    def attempt(batch: Sequence[Change]) -> str | None:
        if all(isinstance(one, Result) and one.fields["fits"] for one in batch):
            made.extend(batch)
            return None
        return f"of {len(batch)}"

    refused = apply(rows, attempt)
    assert made == [row for row in rows if row.fields["fits"]]
    assert refused == [(row, "of 1") for row in rows if not row.fields["fits"]]


def test_one_refused_change_of_a_thousand_costs_few_attempts() -> None:
    """About two for each halving."""
    rows = [Result({}, 0, Offset(n), f"{n}") for n in range(1_000)]
    sizes: list[int] = []

    def attempt(batch: Sequence[Change]) -> str | None:
        sizes.append(len(batch))
        return "no" if rows[617] in batch else None

    assert apply(rows, attempt) == [(rows[617], "no")]
    assert len(sizes) <= 21
