"""The headline: `make bench`, one run that a stranger can trust, of at most twenty minutes on two cores.

Duty: `python -m bench.headline` measures Apache Kafka, Penstock and the null broker in interleaved rounds of one run,
writes every sample to bench/results/headline.json and the page docs/benchmarks/README.md with its plots, and compares
with the run before (`--compare`). Without Java or Maven it measures Penstock and the null broker alone and says so.
Read first: `targets` (what is asked for), `stage` (what the parts share), then the parts in the order below.
May import: penstock.bench, the standard library, psutil, from tests.compat the starters of Kafka and Penstock, and the
other modules of bench.
Invariants: rounds go from broker to broker; Kafka is warm before anything is measured; `targets` and `compare` are
pure; a page has one convention, a ratio above 1 means that Penstock is ahead, with the plain quotient beside it.

Seconds of a full run on two cores, by part (`settings.SECONDS`; `--only` takes these names):

    warm-up     82   three brokers started, topics filled, Kafka under mixed load for 60 s
    produce    265   nine cases x 3 brokers x 3 rounds, pinned and unpinned, 1 s each and their topics
    tools      255   kafka-producer-perf-test (8 shapes) and kafka-consumer-perf-test (4), 3 brokers, 3 rounds
    latency    145   produce at 20 MB/s, 3 s x 3 brokers x 5 rounds; end to end 3 s x 2 brokers x 5 rounds
    curves      70   batch size, record size, growth of a topic to 2 GB
    disk        60   three times the dirty limit through each broker, 60 s each at most, and syncs
    cluster    155   two clusters of three nodes, Kafka's warmed for 60 s, 3 rounds
    start       45   command to first acknowledged produce, idle memory and CPU, 3 rounds
    partitions  10   10,000 partitions on Penstock; on Kafka too with --kafka-partitions (a minute and a half more)

Together 1,087, of which up to 90 are for samples that the host disturbed (`calm`): eighteen minutes. A part that fails
costs its own figures; then nothing is published and the exit is 1. Only a whole run is published. `--compare` leaves
the last JSON and the page as they are and writes its own figures to bench/results/headline-aside.json, unless `--keep`;
`--render` prints the page anew, after reasons.toml was edited.
"""
