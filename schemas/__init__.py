"""Avro schemas: parsing, compatibility, wire format, values, and registries of them.

`registry` and `rest` implement our own registry; `client` and `administration` are clients of any.
import-linter's contract `pure` lists the modules without sockets, threads and clocks.
"""
