"""Retention decision: removes dead letters that are old and that no rebuild needs. Pure."""

from collections.abc import Mapping

from pipeline.ids import Offset


def trim(
    starts: Mapping[int, Offset],
    needed_from: Mapping[int, Offset],
    young_from: Mapping[int, Offset],
) -> dict[int, Offset]:
    """Partition → offset below which dead letters are removed; without unchanged partitions.

    Args:
        starts: the oldest offset of each partition.
        needed_from: no dead letter below these offsets is needed.
        young_from: the offset of the first that is younger than the retention.
    """
    until = {
        partition: min(needed_from.get(partition, start), young_from.get(partition, start))
        for partition, start in starts.items()
    }
    return {partition: offset for partition, offset in until.items() if offset > starts[partition]}
