"""A replay: results of a fragment computed again from its input log, into a topic of their own."""
