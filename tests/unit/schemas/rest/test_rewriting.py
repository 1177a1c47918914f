import pytest

from schemas.rest.rewriting import rewritten


@pytest.mark.parametrize("name", ["subjects", "versions", "config", "mode", "contexts", "schemas"])
def test_a_subject_may_have_the_name_of_a_path_segment(name: str) -> None:
    """Its name does not change how the following segments are parsed."""
    for before, behind in (
        (("subjects",), ("versions", "1")),
        (("compatibility", "subjects"), ("versions", "latest")),
        (("config",), ()),
        (("mode",), ()),
    ):
        path, _ = rewritten(("contexts", ".c", *before, name, *behind), ())
        assert path == (*before, f":.c:{name}", *behind)
