"""Descriptions of a Python box, for plans."""

import hashlib

from pipeline import durations
from pipeline.network.boxes.python import Python
from pipeline.planner.boxes.words import Facts, Words

_SHOWN = 12


def _facts(box: Python) -> Facts:
    digest = hashlib.sha256(box.source.encode()).hexdigest()[:_SHOWN]
    return (
        ("function", box.function),
        *((("source", f"SHA-256 {digest}…"),) if box.source else ()),
        ("columns", ", ".join(map(str, box.columns))),
        ("timeout", durations.format(box.timeout_ms)),
    )


WORDS: Words[Python] = Words(facts=_facts)
