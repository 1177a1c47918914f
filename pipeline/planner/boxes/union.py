"""Descriptions of a union, for plans."""

from pipeline.network.boxes.union import Union
from pipeline.planner.boxes.words import Words

WORDS: Words[Union] = Words()
