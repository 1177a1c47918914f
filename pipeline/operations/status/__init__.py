"""Status of fragments: what the catalog wants of them beside what nodes report."""
