"""Metering of fragments: CPU, records and bytes, charged to the fragments of a node. Pure."""
