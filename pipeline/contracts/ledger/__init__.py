"""Ledger of a contract: metered load per task and settlement period, and payments. Pure.

Entries are chained by SHA-256 and signed by both parties; one that only one party has signed owes
nothing.
"""
