"""Core of the schema registry: state, decisions on it, and its records in the store."""
