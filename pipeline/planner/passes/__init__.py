"""The planner's passes: each file has one public function from a draft to a draft."""
