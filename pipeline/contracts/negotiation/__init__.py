"""Negotiation of contracts: signed proposals, acceptances and cancellations, as one chain. Pure."""
