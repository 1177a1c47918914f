"""Records of a topic: decoding, selection by expressions, tail, producer."""
