"""Descriptions of the top rows of windows, for plans."""

from pipeline.counting import counted
from pipeline.network.boxes.top import HIGHEST, LOWEST, Top
from pipeline.planner.boxes.windows import kept_for_each, window_facts
from pipeline.planner.boxes.words import Facts, Words, computed_facts, on_one_line


def _facts(box: Top) -> Facts:
    return (
        ("rows", str(box.rows)),
        (HIGHEST if box.highest else LOWEST, on_one_line(box.ordered_by)),
        *window_facts(box.window),
        *computed_facts("by", box.by),
        *computed_facts("select", box.select),
    )


def _keeps(box: Top) -> str:
    return kept_for_each(f"at most {counted(box.rows, 'row')}", box.window, box.by)


WORDS: Words[Top] = Words(facts=_facts, keeps=_keeps)
