"""The cases, one file each, and the table of all of them."""

from tests.faults.cases.table import CASES

__all__ = ["CASES"]
