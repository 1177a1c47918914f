"""Operations on an installation: status, positions, records, dead letters, replays, schemas.

Each function serves one request, through `Connections` to the servers of an installation, and
returns plain values or a frozen dataclass. The package imports nothing of the terminal or command
line, so a dashboard or an agent calls it as `pipeline/cli` does. Names end in units; times are
milliseconds since 1970 UTC. Errors are those of `pipeline/errors.py`: all functions raise
`UnavailableError` when a server does not answer; their docstrings list the others.
"""
