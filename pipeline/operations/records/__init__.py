"""Records of a topic: decoded, selected by expressions, tailed, produced."""
