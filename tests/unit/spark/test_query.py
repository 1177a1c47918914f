from pathlib import Path

import pytest
from pyspark.errors.exceptions.base import PySparkException

from pipeline.errors import MedusaError, RetryError
from pipeline.spark.query import DamagedCheckpointError, LostDataError, from_spark

FOLDER = Path("/data/checkpoints/net/box/epoch-1")


@pytest.mark.parametrize(
    ("text", "folder", "kind"),
    [
        ("[CANNOT_LOAD_STATE_STORE.UNRELEASED] x", None, DamagedCheckpointError),
        ("[CANNOT_LOAD_STATE_STORE.UNRELEASED] x", FOLDER, DamagedCheckpointError),
        ("Log file was malformed: version", FOLDER, DamagedCheckpointError),
        (f"Incomplete log file {FOLDER}/offsets/3", FOLDER, DamagedCheckpointError),
        ("the value 'x' cannot be cast because it is malformed", FOLDER, DamagedCheckpointError),
        ("the value 'x' cannot be cast because it is malformed", None, RetryError),
        (f"[FOREACH_BATCH_USER_FUNCTION_ERROR] is malformed {FOLDER}", FOLDER, RetryError),
        ("Some data may have been lost", None, LostDataError),
    ],
)
def test_what_fails_inside_a_batch_does_not_blame_the_checkpoint(
    text: str, folder: Path | None, kind: type[MedusaError]
) -> None:
    """Except where its state cannot be read; a value that cannot be cast is no damaged log."""
    assert type(from_spark(PySparkException(text), folder)) is kind
