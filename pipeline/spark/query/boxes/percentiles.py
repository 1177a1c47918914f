"""Percentiles in Spark SQL.

Spark's `percentile` counts occurrences of each value, which is independent of order. The
approximate one counts logarithmic buckets instead of values, so that its state is bounded: it is a
mergeable sketch (a DDSketch that never collapses), and adding counts has no order.

Bucket i contains the numbers in (g^(i-1), g^i], g = (1 + error) / (1 - error); all of them are
within the error of (1 - error) * g^i. Numbers below zero have the buckets of their opposites,
negated.
"""

from decimal import Decimal, localcontext

from pipeline.spark.query.sql import let

_DIGITS = 30
_SHIFT = 100_000
"""Makes the number of every bucket positive: 1e-38, the least number, at an error of 0.001, has
bucket -43750."""


def exact(argument: str, share: str) -> str:
    """The value at a share of the rows, interpolated linearly."""
    return f"percentile({argument}, {share}D)"


def approximate(argument: str, share: str, error: str) -> str:
    """Within `error`, relative, of the least value that a share of the values does not exceed.

    Args:
        argument: SQL of a finite DOUBLE.
        share: from 0 to 1.
        error: from 0.001 to 0.1.
    """
    width = _log_of_base(error)
    bucket = f"CAST(ceil(ln(abs({argument})) / {width}) AS INT) + {_SHIFT}"
    key = f"CASE WHEN {argument} = 0D THEN 0 ELSE CAST(sign({argument}) AS INT) * ({bucket}) END"
    found = f"percentile_disc({share}D) WITHIN GROUP (ORDER BY {key})"
    middle = f"{1 - Decimal(error)}D * exp(CAST(abs(k) - {_SHIFT} AS DOUBLE) * {width})"
    value = f"CASE WHEN k = 0 THEN 0D ELSE CAST(sign(k) AS DOUBLE) * {middle} END"
    return let("k", found, value)


def _log_of_base(error: str) -> str:
    """The natural logarithm of g as a DOUBLE literal, the same on every machine."""
    with localcontext() as context:
        context.prec = _DIGITS
        base = (1 + Decimal(error)) / (1 - Decimal(error))
        return f"{float(base.ln())!r}D"
