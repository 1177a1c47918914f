"""The log of a node: one file, a line for each event, in the form that `medusa logs` reads.

2026-01-31T12:00:00.000Z INFO [tolls.moving] starting version 1 as epoch 1
"""

import logging
import logging.handlers
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.clock import rfc3339
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


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """Whether it is worth keeping: py4j tells with a trace each call that found Java gone.

    It does so under its own name and under none at all. The lane or the node says what matters.
    """
    return not record.name.startswith("py4j") and Path(record.pathname).parent.name != "py4j"


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
    handler.addFilter(_is_not_py4j)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
