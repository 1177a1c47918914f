"""`medusa participant`: keys of participants."""
