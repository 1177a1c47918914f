"""The batches of a rebuild run under the watermark of the last marker, as if they were one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipeline.ids import Millis
from pipeline.spark.run import rebuild_query
from tests.histories.replaced import replaced

KINDS = "set_back,restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Every piece has the last watermark, whatever is still to be read."""

    def early(
        _shape: object, oldest: Sequence[object], _before_ms: object, last_ms: Millis | None
    ) -> list[Millis | None]:
        return [last_ms for _ in oldest]

    with replaced(rebuild_query, "watermarks", early):
        yield
