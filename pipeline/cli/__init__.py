"""The command line: reads what people type, calls the parts, and shows what they say.

It may import every other package; nothing imports it. `click` and `rich` are used only here.
"""
