"""User-defined functions over Arrow record batches, each in a process of its own.

A deploy tries a function here, and a Python box calls it here; none of its code runs in Medusa's
processes. See `docs/decisions/functions-run-in-a-child.md`.
"""
