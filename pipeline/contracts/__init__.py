"""Contracts between autonomous participants: their terms, and load that moves by price. Pure.

The bounded-price mechanism (Balazinska, Balakrishnan and Stonebraker, NSDI 2004). Nothing here
depends on streams: a task is anything that has a load and can be run by another participant.
"""
