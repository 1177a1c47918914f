"""Status of fragments: the desired state in the catalog, and the reports of nodes."""
