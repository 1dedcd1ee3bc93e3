"""Clusters that are brought from an earlier release to the code of today and back, one node at a time, under traffic.

Duty: every release in `tests/releases` runs as three nodes; clients of today write and read through each change.
May import: what tests may; clusters and loads of `tests.compat` and `tests.faults.cluster`.
Invariants: the cluster is whole before the next node is touched, unless a kill is what is tried; features are raised
last, when nobody goes back any more.
Read `mixed` first, then `test_rolling`.
"""
