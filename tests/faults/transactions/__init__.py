"""Consume, transform, produce under faults: clients of four libraries, killed and cut off as the nodes are.

Duty: worker processes that fill topics in transactions, and others that copy them, with the offsets of what they read
in the same transaction; watchers that read what is committed all the while; faults on workers, leaders, both kinds of
coordinators and controllers; and the judgement: every input once in every output, nothing aborted shown, nothing left
open. The anomalies of readings and of transactions are those of `penstock.testing.sim.transactions.readings`, which
decides them for simulated clusters too.
May import: what `tests.faults.cluster` may, and that room itself.
Invariants: a worker says what it is about to do before it does it, so whatever a log holds was announced; a producer
that a library calls fatal is replaced by another with the same id, as a supervisor does.
Read `history` first (pure), then `libraries`, `worker`, `workshop`, `load`, `faults` and `test_faults`.
"""
