"""Proposal of a network document for an existing topic, from a sample of its records."""
