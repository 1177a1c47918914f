"""Deployment of networks: reads the deployed state, validates, then acts in ordered steps.

`pipeline/planner/diff.py` computes the changes and is pure; this package is the shell around it. It
may import planner, network, catalog and names. The registry is reached through the protocol in
`registry_interface.py`, Kafka through that in `brokers/kafka_interface.py`.
"""
