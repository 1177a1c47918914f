"""The cases, one file each, and their table."""

from tests.faults.cases.table import CASES

__all__ = ["CASES"]
