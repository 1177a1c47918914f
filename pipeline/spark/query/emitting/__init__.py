"""The parts of a query that are long enough for a file of their own."""
