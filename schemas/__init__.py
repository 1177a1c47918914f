"""Avro schemas: parsing, compatibility, wire format, values, and registries of them.

`registry` and `rest` are our own registry; `client` and `administration` talk to anyone's. Which
modules are pure, and know of no socket, thread or clock, import-linter's contract `pure` says.
"""
