"""The kinds of boxes, one file each; a new kind is a file here and a row in `traits.py`."""
