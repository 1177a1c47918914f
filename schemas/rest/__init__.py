"""REST API of the schema registry, and its HTTP server."""
