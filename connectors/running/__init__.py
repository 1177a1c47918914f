"""Running connectors: between a source and its topic, and between a topic and its sink."""
