"""Writing what a batch has made: one transaction, and what is published beside it."""
