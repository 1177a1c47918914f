"""Avro schemas: parsing, compatibility, wire format, values, and the registry that keeps them.

Pure: `types`, `avro`, `canonical`, `compatibility`, `wire`, `logical`, `json_values`, `codec`
(the one home of fastavro), `registry` and `levels`. Shells: `store` (over a versioned store),
`rest` and `server` (HTTP), `client` (anyone's registry).
"""
