from pipeline.reference.inputs import InputRecord, Inputs, Place, Refusal


def place(offset: int) -> Place:
    """A place in the one topic."""
    return Place("cars", 0, offset)


GIVEN = {"cars": tuple(InputRecord(place(n), {"n": n}) for n in range(3))}


def taken(*refusals: Refusal, port: str | None = None) -> list[object]:
    """The numbers of the records that fragment `f` computed with."""
    return [fields["n"] for fields in Inputs(GIVEN, refusals).taken("f", "cars", port)]


def test_records_refused_by_a_fragment_are_excluded_for_it_alone() -> None:
    """Another fragment has separate dead letters."""
    assert taken() == [0, 1, 2]
    assert taken(Refusal("f", place(1), "", "late", "")) == [0, 2]
    assert taken(Refusal("g", place(1), "", "late", "")) == [0, 1, 2]


def test_records_refused_by_one_input_of_a_join_count_in_the_other() -> None:
    """Without a port the record could not be judged at all."""
    left = Refusal("f", place(0), "left", "late", "")
    assert taken(left, port="right") == [0, 1, 2]
    assert taken(left, port="left") == [1, 2]
    assert taken(Refusal("f", place(0), "", "late", ""), port="right") == [1, 2]


def test_a_partly_late_record_counts() -> None:
    """It is in the windows that were open."""
    assert taken(Refusal("f", place(1), "", "partly_late", "")) == [0, 1, 2]


def test_an_unreadable_record_never_counts() -> None:
    """Whether it was refused already or not."""
    given = {"cars": (InputRecord(place(0), None), InputRecord(place(1), {"n": 1}))}
    assert Inputs(given).taken("f", "cars") == [{"n": 1}]
