"""A network document proposed for an existing topic, from a sample of its records."""
