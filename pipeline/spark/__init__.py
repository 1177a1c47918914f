"""A fragment as one Spark query: lowered to plain data first, then to DataFrame calls, then run.

Only this package imports pyspark.
"""
