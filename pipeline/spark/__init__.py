"""Execution of fragments in Spark: lowered to plain data, emitted as DataFrame calls, then run.

Only this package imports pyspark.
"""
