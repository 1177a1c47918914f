"""Warm-up of an idle session for fast first batches: practice and rehearsals."""
