"""What a network described in Python can raise."""

from pipeline.errors import DocumentError, MedusaError, Problem

__all__ = ["DocumentError", "MedusaError", "Problem"]
