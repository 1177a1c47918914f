"""What settings say about themselves."""

from pipeline.settings import SETTINGS, Kind, combine, secret_variables


def test_variables_that_may_hold_a_secret_are_known() -> None:
    """Those of settings that are secrets, and those that settings refer to; no file."""
    ours = {setting.environment for setting in SETTINGS if setting.kind is Kind.SECRET}
    ours |= {"SCHEMA_REGISTRY_URL"}  # a user and a password may stand in it
    assert "KAFKA_PASSWORD" in ours
    assert secret_variables(combine(())) == ours
    written = {"kafka.password": "${env:OF_KAFKA}", "registry.password": "${file:/run/x}"}
    assert secret_variables(combine((("flag", written),))) == ours | {"OF_KAFKA"}
