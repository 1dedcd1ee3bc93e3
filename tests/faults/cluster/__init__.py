"""Clusters of real processes, hurt under load, and their histories judged.

Duty: nodes (`penstock server start`) on hosts of their own (network namespaces on a bridge where root allows, ports of
the loopback elsewhere), clients of four libraries that go on through every fault, a checker that reads what they saw as
Jepsen's Kafka workload does, and a comparison of the replicas' files in the end.
May import: what tests may; `tests.compat` for processes, the judge's own words of the protocol, and stored batches.
Invariants: every process and namespace that is made here is ended here; a fault is healed before the next begins; a
test waits for conditions, never for time, unless time is what is varied.
Read `history` first (pure), then `hosts`, `cluster`, `load` and `faults`.
"""
