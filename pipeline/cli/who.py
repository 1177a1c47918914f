"""Who runs a command, and on which machine."""

import getpass
import os
import socket


def who_and_where() -> str:
    """`user@host`; a user without a name is shown by number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
