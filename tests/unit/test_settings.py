"""What settings say about themselves."""

import pytest

from pipeline.settings import SETTINGS, Kind, combine, problem_with, secret_variables


def test_variables_that_may_hold_a_secret_are_known() -> None:
    """Those of settings that are secrets, and those that settings refer to; no file."""
    ours = {setting.environment for setting in SETTINGS if setting.kind is Kind.SECRET}
    ours |= {"SCHEMA_REGISTRY_URL"}  # a user and a password may stand in it
    assert "KAFKA_PASSWORD" in ours
    assert secret_variables(combine(())) == ours
    written = {"kafka.password": "${env:OF_KAFKA}", "registry.password": "${file:/run/x}"}
    assert secret_variables(combine((("flag", written),))) == ours | {"OF_KAFKA"}


@pytest.mark.parametrize("value", ["500ms", "999ms", "1s", "1500ms", "60000ms", "60s"])
def test_a_node_may_be_suspected_after(value: str) -> None:
    """From half a second to a minute."""
    assert problem_with("suspect_after", value) is None


@pytest.mark.parametrize("value", ["", "499ms", "60001ms", "61s", "0s", "1m", "1", "-1s"])
def test_a_node_may_not_be_suspected_after(value: str) -> None:
    """Less, more, or another unit."""
    assert problem_with("suspect_after", value) is not None


@pytest.mark.parametrize(
    ("value", "fits"), [("", True), ("1", True), ("9999", True), ("0", False), ("-1", False)]
)
def test_a_limit_of_fragments_is_a_number_or_nothing(value: str, *, fits: bool) -> None:
    """Nothing: any number; a node that runs nothing is a drained one."""
    assert (problem_with("most_fragments", value) is None) is fits
