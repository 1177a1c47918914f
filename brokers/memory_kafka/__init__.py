"""Kafka in memory, for tests and simulations; a conformance suite compares it with real brokers."""
