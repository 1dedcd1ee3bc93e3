"""Apache Kafka on this machine: its jars, its command line tools, and one node of it.

Duty: give tests and benchmarks the real thing to be judged by. Read `jars` first, then `tools` and `node`.
May import: the standard library only, so that benchmarks can use it without the test extras.
Invariants: jars are fetched once into the ignored cache; every process started here is stopped by its own id;
nothing listens anywhere but on the loopback.
"""
