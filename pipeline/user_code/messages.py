"""How a process and its child talk: a byte that says what it is, a length, and so many bytes."""

import struct
from enum import Enum
from typing import Final

import pyarrow as pa

HEAD: Final = struct.Struct("!cQ")
"""Of each message: its kind and how long the rest is."""


class Kind(Enum):
    """What a message is."""

    LOAD = b"l"
    """The function, as JSON; answered by READY or FAILED."""
    ROWS = b"r"
    """A batch; answered by a batch or by FAILED."""
    READY = b"y"
    FAILED = b"f"
    """What was raised, in one line."""


def encoded(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decoded(content: bytes | bytearray) -> pa.RecordBatch:
    """What `encoded` wrote.

    Raises:
        pa.ArrowInvalid: it is none.
    """
    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        return reader.read_next_batch()
