"""Examples: networks on generated input, every result compared with the reference.

It may import every package but `pipeline/cli`, which calls it.
"""
