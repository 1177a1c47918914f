"""Drawings of networks: the contents (`picture.py`), and a file for each format. Pure."""
