"""What is found out of a batch that was executed: counts, refused records, failed results."""
