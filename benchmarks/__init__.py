"""Comparison with a plain PySpark script; run with `python -m benchmarks.latency` and so on."""
