"""What Medusa offers to programs.

`builder`, `reader`, `connectors`, `generators`, `errors`, the command, and a plugin of pytest. It
is the one name that an installation brings: a wheel holds everything else below it, see
docs/decisions/one-name-is-installed.md.
"""
