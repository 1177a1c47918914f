"""Schemas of a registry: lookup of versions, and schemas with references."""
