"""Dead letters as people handle them: read, counted, chosen, sent again, removed."""
