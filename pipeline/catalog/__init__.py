"""The catalog: what is deployed, who owns it, what nodes see. Kept in a versioned store.

Records, their codec and the steps on them are pure; `catalog.py` reads, asks them, and applies.
May import brokers' store protocol, names, ids and errors.
"""
