"""Trimming: removal of the records of a fragment's topics that are needed no more."""
