"""Message format between a process and its child: a kind byte, a length, and the content."""

import struct
from enum import Enum
from typing import Final

import pyarrow as pa

HEAD: Final = struct.Struct("!cQ")
"""The header of a message: its kind and the length of its content."""


class Kind(Enum):
    """The kind of a message."""

    LOAD = b"l"
    """The function, as JSON; answered by READY or FAILED."""
    ROWS = b"r"
    """A batch; answered by a batch or by FAILED."""
    READY = b"y"
    FAILED = b"f"
    """The error message, in one line."""


def encoded(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decoded(content: bytes | bytearray) -> pa.RecordBatch:
    """The inverse of `encoded`.

    Raises:
        pa.ArrowInvalid: it is not an encoded batch.
    """
    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        return reader.read_next_batch()
