"""Compiler of fragments to Spark queries: lowering to plain data, then DataFrame calls."""
