"""Options of the benchmark of reliability."""

import pytest

from benchmarks import reliability
from benchmarks.peer_recovery import STANDBYS


@pytest.mark.parametrize("mode", STANDBYS)
def test_kafka_streams_computes_windows_alone(
    mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any server is started."""
    with pytest.raises(SystemExit):
        reliability.main(["--modes", mode])
    assert "--query windows alone" in capsys.readouterr().err


def test_a_mode_is_of_medusa_or_of_a_peer() -> None:
    """No name is in both tables."""
    assert not set(STANDBYS) & set(reliability.MODES)
    assert reliability.COMPARED in reliability.QUERIES


def test_everything_is_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    """All modes include those of Kafka Streams, and so does what they refuse."""
    with pytest.raises(SystemExit):
        reliability.main(["--all", "--query", "deduplicate"])
    assert "--query windows alone" in capsys.readouterr().err
