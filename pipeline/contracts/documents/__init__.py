"""Contract documents: YAML, canonical JSON and signatures, and the export to other tools.

The only package that imports cryptography and rfc8785.
"""
