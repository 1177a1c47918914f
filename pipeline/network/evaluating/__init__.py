"""Expressions computed in Python, record by record, with the results that Spark gives.

A value is what its type says: TIMESTAMP as whole microseconds and DATE as whole days since 1970,
DECIMAL as a `Decimal` with the digits of its type, FLOAT as a number that a FLOAT can hold. What
cannot be computed here with exactly Spark's result is refused when the expression is read.
"""
