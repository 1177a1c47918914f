"""Reader of results: stable and tentative ones of an output, merged. For programs of users.

    results.py   what is reported, and where a reader begins
    covered.py   the boundary of which all stable results were read
    stable.py    records of the stable topic
    reader.py    the reader
    opening.py   a reader with connections of its own

Documented in docs/consumers.md; public as the module `reader` of the installed package.
"""
