"""The planner's part of each kind of box: one small file per kind."""
