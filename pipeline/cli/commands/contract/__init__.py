"""`medusa contract`: negotiation of contracts with other participants."""
