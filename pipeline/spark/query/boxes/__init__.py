"""Lowering of boxes: one small file for each kind; `catalogue.py` lists them."""
