"""What the planner has to know about each kind of box: one small file per kind."""
