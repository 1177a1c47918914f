from brokers.embedded.kafka import Listener, configuration

CLIENTS = Listener("PLAINTEXT", 9092, 9092)
BEHIND = Listener("BEHIND", 9093, 9094)


def properties(text: str) -> dict[str, str]:
    """The properties of a text."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_broker_has_one_listener_of_clients() -> None:
    """And one of its own as a controller, which is not advertised."""
    found = properties(configuration((CLIENTS,), 9099))
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9099"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_a_further_listener_advertises_another_port() -> None:
    """That of a relay in front of it."""
    found = properties(configuration((CLIENTS, BEHIND), 9099))
    assert found["listeners"].split(",")[1] == "BEHIND://127.0.0.1:9093"
    assert found["advertised.listeners"].split(",")[1] == "BEHIND://127.0.0.1:9094"
    assert "BEHIND:PLAINTEXT" in found["listener.security.protocol.map"].split(",")
