"""Simulator of federations: random contracts, loads, faults; through the library's participants."""
