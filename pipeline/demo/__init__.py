"""The demo: the toll network on made-up traffic, every result compared with the reference.

It may import every package but `pipeline/cli`, which calls it.
"""
