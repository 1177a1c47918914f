"""Descriptions of a deduplication, for plans."""

from pipeline import durations
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.planner.boxes.words import Facts, Words


def _facts(box: Deduplicate) -> Facts:
    return (("by", ", ".join(box.by)), ("within", durations.format(box.within_ms)))


def _keeps(box: Deduplicate) -> str:
    longer = f" by {durations.format(box.within_ms)}" if box.within_ms else ""
    return (
        f"rows of {box.input} until event time passes theirs, "
        f"and {', '.join(box.by)} of each until it passes theirs{longer}"
    )


WORDS: Words[Deduplicate] = Words(facts=_facts, keeps=_keeps)
