"""Ids of results that may be written twice: a repetition of the batch gives them again.

An id does not depend on the order of the results, nor on where they are in a topic: only on the cut
of the batch, the fragment, and what is written. Equal results of a batch are numbered.
"""

from hashlib import blake2b
from typing import Final

from pipeline.ids import FragmentId
from pipeline.spark.batch.results import Record

_BYTES: Final = 12
"""Of a batch of 400,000 results, two have one digest with a probability below 1e-17."""


class ResultIds:
    """The ids of the results of one batch.

    Args:
        fragment: that writes them; another one may have written the topic before.
        cut: the id of the batch's cut.
    """

    def __init__(self, fragment: FragmentId, cut: str) -> None:
        self._digest = blake2b(str(fragment).encode(), digest_size=_BYTES)
        self._cut = cut
        self._equal: dict[str, int] = {}

    def of(self, record: Record) -> bytes:
        """The id of the next result: `CUT/DIGEST`; of further equal ones `CUT/DIGEST/NUMBER`."""
        key, value, timestamp_ms, partition = record
        digest = self._digest.copy()
        length = -1 if key is None else len(key)
        digest.update(b"%d %d %d " % (timestamp_ms, partition, length))
        digest.update(key or b"")
        digest.update(value)
        found = digest.hexdigest()
        number = self._equal.get(found, 0)
        self._equal[found] = number + 1
        return f"{self._cut}/{found}/{number}".removesuffix("/0").encode()
