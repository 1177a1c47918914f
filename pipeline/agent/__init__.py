"""The agent of a node: it hears events, decides in pure code, and performs what was decided.

`events`, `effects`, `state`, `plans`, `status`, `decide` and `rules` are pure; `loop`, `perform`,
`background` and `polls` do the I/O.
"""
