"""Reference implementations of the example networks, and checkers of recorded output.

Pure: it works on lists of records that were read before. It may import only the standard library.
"""
