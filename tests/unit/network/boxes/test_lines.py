"""Lines of a document in error messages."""

from tests.unit.network.described import HEAD, SCHEMAS, ProblemsOf


def test_errors_in_columns_have_their_own_lines(problems_of: ProblemsOf) -> None:
    """Not that of the box."""
    found = problems_of(
        HEAD
        + """\
  b:
    aggregate: o
    window: 1m
    by:
      - car
      - tags
    compute:
      n: count(*)
  c:
    top: o
    rows: 1
    highest: segment
    window: 1m
    by: [car]
    select:
      at: at
      CAR: car
""",
        SCHEMAS,
    )
    of_groups, of_output = (text.split("\n")[0] for text in found)
    assert of_groups.startswith("network.yaml:11, box b, column tags: tags is MAP<STRING, STRING>")
    place = "network.yaml:22, box c, column car"
    assert of_output == f"{place}: two columns of the output are called car"
