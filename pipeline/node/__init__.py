"""The process of a node: connects, opens the Spark session, registers, runs the agent."""
