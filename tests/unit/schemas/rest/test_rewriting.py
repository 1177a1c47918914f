import pytest

from schemas.rest.rewriting import rewritten


@pytest.mark.parametrize("name", ["subjects", "versions", "config", "mode", "contexts", "schemas"])
def test_a_subject_may_be_called_as_a_part_of_a_path(name: str) -> None:
    """What it is called does not make a name of what stands behind it."""
    for before, behind in (
        (("subjects",), ("versions", "1")),
        (("compatibility", "subjects"), ("versions", "latest")),
        (("config",), ()),
        (("mode",), ()),
    ):
        path, _ = rewritten(("contexts", ".c", *before, name, *behind), ())
        assert path == (*before, f":.c:{name}", *behind)
