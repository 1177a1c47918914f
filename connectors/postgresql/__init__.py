"""Rows of a PostgreSQL table."""
