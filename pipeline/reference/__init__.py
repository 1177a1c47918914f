"""What a network must give, computed the simple way, and checkers that compare it with what came.

Pure: it works on lists of records that were read before. It may import only the standard library.
"""
