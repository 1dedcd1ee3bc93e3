"""Kafka Streams on this machine: an application of ours that counts words, as many processes of it as are wanted.

Duty: fetch the jars (`jars`), compile and run the application (`WordCount.java`, `application`), write lines for it and
judge what it says (`lines`).
May import: what tests may; the cluster and the processes of `tests.compat`.
Invariants: jars are fetched once into the ignored cache; what came of a line is known from the lines alone.
"""
