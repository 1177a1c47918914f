"""The example in the documentation, which has nothing to do with streams."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "docs" / "federation" / "example.py"


def test_the_example_moves_test_suites_to_who_has_room() -> None:
    """Each decision is explained."""
    said = runpy.run_path(str(EXAMPLE))["main"]()
    assert said[0].startswith("berlin offers berlin.0, berlin.1, berlin.2 and 12 more to lyon")
    assert said[-1].startswith("lyon runs berlin.0")
