"""The process of a node: connects, opens the Spark session, registers, lets the agent loop."""
