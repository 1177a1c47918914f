"""Schemas of a registry: versions by name, and schemas that refer to others."""
