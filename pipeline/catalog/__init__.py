"""The catalog: deployed networks, owners of fragments, observed status; in a versioned store.

Records, their codec, and the modules that compute atomic steps are pure; the classes in
`catalog.py` read, compute a step, and apply it. May import brokers' store protocol, names, ids and
errors.
"""
