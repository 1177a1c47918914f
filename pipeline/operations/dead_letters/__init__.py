"""Operations on dead letters: count, read, send again, remove."""
