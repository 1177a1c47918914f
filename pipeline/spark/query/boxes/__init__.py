"""How each kind of box is lowered: one small file for each kind; `catalogue.py` lists them."""
