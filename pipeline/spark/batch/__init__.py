"""Analysis of an executed batch: counts, refused records, failed results."""
