"""Command line: parses arguments, calls the other packages, and prints their results.

It may import every other package; nothing imports it. `click` and `rich` are used only here.
"""
