"""What the planner says about a union."""

from pipeline.network.boxes.union import Union
from pipeline.planner.boxes.words import Words

WORDS: Words[Union] = Words()
