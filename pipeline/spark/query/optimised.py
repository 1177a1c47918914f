"""Optimising the plan of a query once, and not for each of its batches.

Spark optimises the plan of a streaming query anew for each batch, though between two batches only
ends of ranges change. Where it is given what its optimiser has made already, its rules find little
to do. It is reached through the JVM gateway; a change of it ends here.
"""

from pyspark.sql import DataFrame


def optimised(rows: DataFrame) -> DataFrame:
    """The same rows, by the plan that Spark's optimiser makes of theirs.

    For streams that keep no state: of others Spark has to see which operators there are. Rows that
    are no stream, and those of which the optimiser leaves an input out, come back as they are: a
    checkpoint counts on the inputs and their order.
    """
    if not rows.isStreaming:
        return rows
    session = rows.sparkSession
    jvm, java = session.sparkContext._jvm, session._jsparkSession  # noqa: SLF001 - PySpark keeps them
    assert jvm is not None, "a classic session has a JVM"  # noqa: S101
    classic = jvm.org.apache.spark.sql.classic
    classic.SparkSession.setActiveSession(java)  # whose settings the rules go by
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - the same
    better = java.sessionState().optimizer().execute(plan)
    if str(better.collectLeaves()) != str(plan.collectLeaves()):
        return rows
    return DataFrame(classic.Dataset.ofRows(java, better), session)
