"""A fragment as a query: lowered to plain data, then emitted as DataFrame calls."""
