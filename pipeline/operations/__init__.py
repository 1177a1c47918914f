"""Operations on an installation: status, positions, records, dead letters, replays, schemas.

Each function answers one request, from `Connections` to the servers of an installation, and returns
a frozen dataclass. It imports no terminal, no option parser and nothing of the command line, so a
dashboard or an agent calls it as `pipeline/cli` does. Times are milliseconds since 1970 UTC unless
a name says otherwise; errors are those of `pipeline/errors.py`.
"""
