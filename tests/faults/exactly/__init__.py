"""Exactly once from topic to topic on real Spark: drivers killed or stopped, workers killed, batches played again.

`chain` is the whole way of a line, from a file to topics and tables, as processes that are killed. `blows` is the topic
sink that is struck at a chosen point, in a driver of `tests/faults/spark/driver`.
"""
