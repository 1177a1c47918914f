"""Python boxes, stateless and before windows, which reject some rows."""

from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.readings import declared, stream
from tests.faults.cases.stateless import MAP, number, of_one, text
from tests.faults.cases.window import COLUMNS, counted
from tests.faults.history import Expected, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

RATING = """
import pyarrow as pa
import pyarrow.compute as pc


def rate(batch):
    values = batch.column("value")
    parts = pc.divide(pa.scalar(100_000, pa.int32()), values)
    rows = pa.array(range(batch.num_rows), pa.int32())
    made = batch.select(["sensor", "number", "value"]).append_column("part", parts)
    made = made.append_column("__row", rows)
    return made.filter(pc.not_equal(pc.bit_wise_and(values, 3), 3))
"""
"""A value of 0 is no divisor; a fourth of the rows is filtered out."""


def _rated(fragment: str, accepted: Accepted) -> list[Sent]:
    taken = accepted.of(fragment, "readings")
    return [record for record in taken if number(record, "value") % 4 != 3]


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    parts = [
        of_one(r, (text(r, "sensor"), number(r, "number"), 100_000 // number(r, "value")))
        for r in _rated("parts", accepted)
    ]
    return {"parts": parts, "counts": counted(_rated("counts", accepted))}


PYTHON = Case(
    name="python",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  rated:\n"
        + "    python: readings\n"
        + "    function: rating.py:rate\n"
        + "    columns: {sensor: STRING, number: INT, value: INT, part: INT}\n"
        + "  parts: {map: rated, select: [sensor, number, part]}\n"
        + "  counts:\n"
        + "    aggregate: rated\n"
        + "    window: 1s\n"
        + "    by: [sensor]\n"
        + "    compute: {n: count(*), total: sum(value), most: max(value)}\n"
        + "outputs:\n"
        + "  parts: {topic: {name}-parts, partitions: 2}\n"
        + "  counts: {topic: {name}-counts, partitions: 2}\n"
    ),
    streams=(stream(),),
    feed=MAP.feed,
    close=MAP.close,
    reference=_reference,
    columns={"parts": Columns(("sensor", "number", "part"), ("number",)), "counts": COLUMNS},
    files={"rating.py": RATING},
)
