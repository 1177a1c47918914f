"""Larger parts of the emission of queries."""
