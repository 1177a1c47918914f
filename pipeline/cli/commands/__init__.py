"""Commands of the command line: one module with a function `command` each, listed in `main.py`."""
