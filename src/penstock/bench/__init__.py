"""Measuring brokers: loads of any Kafka-compatible address, figures with their spread, pages and plots.

    loads        lanes.py connections with a fixed request; raw.py loads of pre-encoded requests
    figures      series.py samples, medians, ratios; report.py JSON, pages, tables; plot.py charts as SVG

May import: `client`, `protocol`, `kernels`, `model`. The suites in the repository's `bench/` are built of these pieces
too.

Invariants: what one contender is given, every other is given byte for byte; rounds of contenders are interleaved; a
figure is a median with its spread, and a ratio compares medians of one run. Latency is open loop: it counts from when
a request was due, so that a stall is charged to all that it held up.

Read `series.py` first, then `raw.py`.
"""
