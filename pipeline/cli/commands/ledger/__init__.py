"""`medusa ledger`: what contracts were used for, and what is owed."""
