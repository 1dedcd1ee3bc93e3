"""A year in an hour: real nodes whose every period is ten thousand times shorter than in life, and what is left of it.

Duty: three nodes (processes), clients of four libraries, an agent with a log that rotates, a pipeline into a table that
is compacted, topics and groups that come and go, nodes that are killed; a sample of every process every few seconds; a
judge who compares the end with what was after a quarter.
May import: what tests may; writers and readers of `tests.faults.cluster`, parties of `bench.soak`.
Invariants: every process that is started here is ended here; whatever lives at one time is bounded, so that what grows
is a leak; what a client is refused for good, a record that is lost, doubled or out of order, fails the run.
Read `settings` first, then `verdict` (pure), `world` and `test_life`.
"""
