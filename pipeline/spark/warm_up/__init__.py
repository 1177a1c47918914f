"""What an idle session does, so that its first batches are fast: practice and rehearsals."""
