"""Benchmarks: figures against Apache Kafka on the same machine, as ratios of one run. Never timed tests.

Duty: `python -m bench.headline` (make bench) is the run that the README points to; every other suite, such as
`python -m bench.node` (make bench SUITE=node), looks at one thing more closely and shares the pieces.
Read first: `headline` (what is measured), then `brokers` (who is measured) and `penstock.bench.raw` (how it is loaded).
May import: the standard library, psutil, from tests.compat the Apache Kafka starter and the judge's protocol words,
from tests.faults disks that hang, and of penstock only `penstock.bench`, whose load is the same bytes for every broker;
`client_runs`, which is the measured process of a client, imports that client, and `durability.story` the metadata log's
format, which both brokers write.
Invariants: every process started here is stopped, and every directory made here removed, also on failure; rounds of
the brokers are interleaved; a figure is a median with its spread, and a ratio compares medians of the same run.
"""
