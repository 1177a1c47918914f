"""Networks as drawings: what is drawn (`picture.py`), and a file for each way to draw it. Pure."""
