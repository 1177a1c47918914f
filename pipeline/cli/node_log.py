"""Log file of a node: a line per event, in the format that `medusa logs` parses.

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
"""Libraries that log only warnings, since their other entries would outnumber the node's."""


class LineFormatter(logging.Formatter):
    """Format of an entry: time in UTC, level, fragment if it concerns one, message."""

    def format(self, record: logging.LogRecord) -> str:
        """An entry; a trace follows it, indented."""
        fragment = getattr(record, "fragment", "")
        label = f"[{fragment}] " if fragment else ""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        body = text.replace("\n", "\n    ")
        return f"{rfc3339(int(record.created * 1000))} {record.levelname} {label}{body}"


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """Log filter that drops the entries of py4j, which logs a trace for each call to a dead JVM.

    It does so with its own logger and with the root logger. The lane or the node logs the cause.
    """
    return not record.name.startswith("py4j") and Path(record.pathname).parent.name != "py4j"


@contextmanager
def log_to(path: Path, *, verbose: bool) -> Iterator[None]:
    """Log to a rotating file while the block runs.

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
