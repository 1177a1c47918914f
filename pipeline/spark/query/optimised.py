"""Optimisation of a query's plan once instead of once per batch.

Spark optimises the plan of a streaming query anew for each batch, though only ends of ranges change
between batches. On an already optimised plan its rules have little to do, and change nothing: what
Spark executes, and so the state, is the same. The optimiser is called through the JVM gateway; only
this module depends on it.
"""

from pyspark.sql import DataFrame


def optimised(rows: DataFrame) -> DataFrame:
    """The same rows, by the plan that Spark's optimiser returns for theirs.

    Batch rows, and rows of which the optimiser removes an input, are returned unchanged: a
    checkpoint depends on the inputs and their order.
    """
    if not rows.isStreaming:
        return rows
    session = rows.sparkSession
    jvm, java = session.sparkContext._jvm, session._jsparkSession  # noqa: SLF001 - PySpark keeps them
    assert jvm is not None, "a classic session has a JVM"  # noqa: S101
    classic = jvm.org.apache.spark.sql.classic
    classic.SparkSession.setActiveSession(java)  # the rules use its settings
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - the same
    better = java.sessionState().optimizer().execute(plan)
    if str(better.collectLeaves()) != str(plan.collectLeaves()):
        return rows
    return DataFrame(classic.Dataset.ofRows(java, better), session)
