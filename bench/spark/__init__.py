"""The suite `spark`: our source beside Spark's own Kafka connector, topics into Delta, and how fresh tables are.

Read first: `__main__` (what is measured), then `measured` (the process that is measured) and `family` (its CPU time).
`topics` fills topics, `changes` sends changes of rows, `pace` is a producer that keeps a rate, `freshness` tells when
rows became visible, `peaks` how much memory workers had, `profile` where a task's time goes.
Only `measured` and `profile` import penstock: they run what is measured. Both formats run in the same JVM, in turns,
and the CPU time is that of the whole family of processes, JVM and Python workers, without broker and producer.
"""
