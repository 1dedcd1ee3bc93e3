"""Measuring brokers: loads of any Kafka-compatible address, figures with their spread, pages and plots.

    loads        lanes.py connections with a fixed request; raw.py loads of pre-encoded requests
    figures      latency.py what was due when; series.py samples, medians, ratios
    telling      report.py JSON, pages, tables; plot.py charts as SVG; telling.py a run of `penstock bench`
    a run        settings.py what is measured; targets.py addresses and their topics; course.py warm-up and rounds
    clients      crew.py processes and worker.py what runs in one; jobs.py what they say to each other; own_client.py,
                 raw_client.py and spark_client.py what they do

May import: `client`, `protocol`, `kernels`, `metadata`, `model`; `spark_client.py` alone also `spark`, when it is asked
to. The suites in the repository's `bench/` are built of the loads and figures too.

Invariants: what one contender is given, every other is given byte for byte, by the same processes; rounds of contenders
are interleaved; a figure is a median with its spread, and a ratio compares medians of one run. Latency is open loop: it
counts from when something was due, so that a stall is charged to all that it held up. A topic is deleted by whoever
made it, also on Ctrl-C, and no other topic ever is; no process outlives the run.

Read `course.py` first, then `own_client.py` and `raw.py`.
"""
