import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.network import type_text
from pipeline.network.types import (
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Scalar,
    StructType,
)

scalars: st.SearchStrategy[DataType] = st.sampled_from(
    [s for s in Scalar if s not in (Scalar.INTERVAL, Scalar.NULL)]
)
decimals: st.SearchStrategy[DataType] = st.integers(1, 38).flatmap(
    lambda p: st.builds(DecimalType, st.just(p), st.integers(0, p))
)
types = st.recursive(
    scalars | decimals,
    lambda inner: (
        st.builds(ArrayType, inner, st.just(True))
        | st.builds(MapType, inner, st.just(True))
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: StructType(
                "", tuple(Column(f"f{i}", part, True) for i, part in enumerate(parts))
            )
        )
    ),
    max_leaves=5,
)


@given(types)
def test_every_type_round_trips_as_text(data_type: DataType) -> None:
    """The text of a type in messages can be written in a document."""
    assert type_text.read(str(data_type)) == data_type


def test_a_type_may_be_not_null() -> None:
    """At each level, in lower or upper case, with spaces or without."""
    column = type_text.read_column(
        "c", "array< struct<a:int not null,b : MAP<STRING,DATE NOT NULL>>>"
    )
    fields = (
        Column("a", Scalar.INT, nullable=False),
        Column("b", MapType(Scalar.DATE, value_nullable=False), nullable=True),
    )
    assert column == Column("c", ArrayType(StructType("", fields), True), nullable=True)
    assert not type_text.read_column("c", "STRING NOT NULL").nullable
    assert type_text.read("DECIMAL(5)") == DecimalType(5, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a type is missing"),
        ("TEXT", "there is no type TEXT"),
        ("INTERVAL", "there is no type INTERVAL"),
        ("INT INT", "'INT' is too much"),
        ("INT!", "'!' cannot be read"),
        ("INT NOT", "NOT stands without NULL"),
        ("DECIMAL", "( is missing"),
        ("DECIMAL(39,2)", "DECIMAL(p,s) has 1 to 38 digits, s of them behind the point"),
        ("DECIMAL(2,3)", "DECIMAL(p,s) has 1 to 38 digits, s of them behind the point"),
        ("DECIMAL(a)", "DECIMAL(p,s) has 1 to 38 digits, s of them behind the point"),
        (f"DECIMAL({'9' * 9_999})", "DECIMAL(p,s) has 1 to 38 digits, s of them behind the point"),
        ("ARRAY<INT", "> is missing"),
        ("ARRAY INT", "< is missing before INT"),
        ("MAP<INT, INT>", "the keys of a MAP are of type STRING"),
        ("STRUCT<>", "a field of STRUCT needs a name"),
        ("STRUCT<1: INT>", "a field of STRUCT needs a name"),
        ("STRUCT<a INT>", ": is missing before INT"),
        ("STRUCT<a: INT, A: INT>", "STRUCT has A twice"),
        ("ARRAY<" * 20 + "INT" + ">" * 20, "types lie more than 16 deep in each other"),
    ],
)
def test_an_invalid_type_is_reported(text: str, problem: str) -> None:
    """With a message."""
    with pytest.raises(type_text.UnknownTypeError) as caught:
        type_text.read(text)
    assert str(caught.value) == problem
