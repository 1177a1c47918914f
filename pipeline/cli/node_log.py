"""The log of a node: one file, a line for each event, in the form that `medusa logs` reads.

2026-01-31T12:00:00.000Z INFO [tolls.moving] starting version 1 as epoch 1
"""

import logging
import logging.handlers
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.cli.times import rfc3339
from pipeline.errors import EnvironmentProblem

_BYTES_MAX = 20_000_000
_FILES_KEPT = 3
_QUIET = ("kazoo", "httpx", "httpcore", "pyspark")
"""Libraries whose chatter would drown what the node says."""


class LineFormatter(logging.Formatter):
    """Time in UTC, level, the fragment that it is about if there is one, and the message."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry; a trace goes below it, indented."""
        fragment = getattr(record, "fragment", "")
        label = f"[{fragment}] " if fragment else ""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        body = text.replace("\n", "\n    ")
        return f"{rfc3339(int(record.created * 1000))} {record.levelname} {label}{body}"


@contextmanager
def log_to(path: Path, *, verbose: bool) -> Iterator[None]:
    """Send what this process logs into a file as long as the block runs.

    Raises:
        EnvironmentProblem: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=_BYTES_MAX, backupCount=_FILES_KEPT, encoding="utf-8"
        )
    except OSError as error:
        raise EnvironmentProblem(
            f"the log cannot be written: {error.strerror}",
            place=str(path),
            hint="choose another data folder with --data FOLDER.",
        ) from error
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    # It reports the error by which a lane is stopped; the lane itself says what matters.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
