"""In-memory Kafka for tests and simulations; a conformance suite compares it with real brokers."""
