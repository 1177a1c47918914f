"""Dead letter queue: parsing, filters, counts, redrive, purge and retention."""
