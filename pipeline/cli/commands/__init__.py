"""One verb of the command line per module; each offers `command`. `main.py` lists them."""
