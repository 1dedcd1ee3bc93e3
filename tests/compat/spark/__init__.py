"""Apache Spark's own Kafka connector on this machine, as judge of our broker and of our source and sink.

Duty: fetch the connector's jars (`jars`), run a session that has both formats (`session`), write topics that are hard
to read (`topics`), read and compare whole tables (`rows`).
May import: pyspark, the test kit of `tests.compat`; of penstock only the settings of a session, which both formats
share, so that neither has an advantage.
Invariants: jars are fetched once into the ignored cache; a comparison is of whole rows, sorted by where they lie.
"""
