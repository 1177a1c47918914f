"""Contracts between participants: keys, negotiation, ledgers."""
