"""Reference implementation of sessions, and a hypothesis strategy for their windows."""

from collections.abc import Iterable

from hypothesis import strategies as st

from pipeline.network.boxes.sessions import SessionWindow


def _window(gap: int, more: int) -> SessionWindow:
    return SessionWindow(gap, gap + more)


SESSIONS = st.builds(_window, st.integers(1, 20), st.integers(1, 60))


def sessions_of(window: SessionWindow, times: Iterable[int]) -> list[list[int]]:
    """The records of one group, session by session, in order."""
    found: list[list[int]] = []
    for at in sorted(times):
        last = found[-1][-1] if found else None
        together = (
            last is not None
            and at - last <= window.gap_ms
            and at // window.longest_ms == last // window.longest_ms
        )
        if together:
            found[-1].append(at)
        else:
            found.append([at])
    return found
