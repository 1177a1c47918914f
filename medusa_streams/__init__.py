"""What Medusa offers to programs: `builder`, `reader`, `errors`, the command, a plugin of pytest.

It is the one name that an installation brings: a wheel holds everything else below it, see
docs/decisions/one-name-is-installed.md.
"""
