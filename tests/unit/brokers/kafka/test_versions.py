import struct

import pytest

from brokers.kafka.versions import read_requests, version_words


def response(*ranges: tuple[int, int, int], failed: int = 0) -> bytes:
    """The bytes of a broker's response."""
    body = b"".join(struct.pack(">hhh", *one) for one in ranges)
    return struct.pack(">ihi", 1, failed, len(ranges)) + body


def test_requests_are_parsed() -> None:
    """Number, oldest and newest version of each."""
    assert read_requests(response((1, 4, 17), (3, 0, 13))) == {1: (4, 17), 3: (0, 13)}


@pytest.mark.parametrize(
    "wrong", [b"", b"HTTP/1.1 400", response((1, 0, 1))[:-1], response(failed=35)]
)
def test_a_foreign_response_is_an_error(wrong: bytes) -> None:
    """The server is not a Kafka broker."""
    with pytest.raises(OSError, match=r"no answer of Kafka|error 35"):
        read_requests(wrong)


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ({1: (4, 17), 75: (0, 0)}, "4.0 or newer"),
        ({1: (0, 16), 75: (0, 0)}, "3.8 or 3.9"),
        ({1: (0, 15)}, "older than 3.8"),
    ],
)
def test_the_version_is_derived_from_requests(
    requests: dict[int, tuple[int, int]], words: str
) -> None:
    """As far as they allow."""
    assert version_words(requests) == words
