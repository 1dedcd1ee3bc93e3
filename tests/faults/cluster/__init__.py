"""Clusters of real processes, hurt under load, and their histories judged.

Duty: nodes (`penstock server start`) on hosts, disks and clocks of their own (network namespaces on a switch of ours,
ext4 in files, a preloaded shim, where root allows; ports of the loopback elsewhere), clients of four libraries that go
on through every fault, faults that overlap and heal in any order, a checker that reads what clients saw as Jepsen's
Kafka workload does, and a comparison of the replicas' files in the end.
May import: what tests may; `tests.compat` for processes, the judge's own words of the protocol, and stored batches.
Invariants: every process, namespace, device and mount that is made here is ended here; every fault ends; a test waits
for conditions, never for time, unless time is what is varied.
Read `history` and `schedule` first (pure), then `links`, `hosts`, `disks`, `shim`, `load`, `faults` and `siege`.
`damage` is apart: every kind of file, damaged in every way.
"""
