"""Interpreter of expressions in Python, record by record, with exactly Spark's results.

Values by type: TIMESTAMP is whole microseconds and DATE whole days since 1970, DECIMAL a `Decimal`
with the digits of its type, FLOAT a number of single precision. An expression whose result may
differ from Spark's is rejected when it is read.
"""
