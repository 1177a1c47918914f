"""Diagnosis of an installation: observed facts, and the findings that follow from them."""
