"""The first and the last mile: data that are not in a topic yet, and results that leave one."""
