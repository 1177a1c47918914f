"""Transactional sink: one transaction per batch, and the boundary after it."""
