"""The agent of a node: reads events, decides in pure code, and performs the resulting effects.

`events`, `effects`, `state`, `plans`, `status`, `decide` and `rules` are pure; `loop`, `perform`,
`background` and `polls` do the I/O.
"""
