"""The kinds of boxes, one file each; a new kind is one more and a row in `traits.py`."""
