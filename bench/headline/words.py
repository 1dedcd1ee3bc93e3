"""What the page says around its figures: how they were measured, and what each group means."""

from __future__ import annotations

from bench.headline import cluster, curves, disk, latency, start, tools

CONVENTION = """\
All figures are of one run. **A ratio above 1 means that Penstock is ahead, whatever the figure**; the table of
targets has the plain quotient Penstock ÷ Kafka beside it, because targets for costs are usually given that way (“at
most 0.8 of Kafka's CPU” is “1.25× ahead or more”). The null broker answers and discards: it is the bound of client,
loopback and this machine, not a competitor. Figures are medians of rounds that go from broker to broker, with the
lowest and highest round in brackets.

Nothing is fsynced before an acknowledgement on either side, which is Kafka's default; the data fits the page cache
unless a figure says disk regime.
""".splitlines()

HOW = """\
- **What is fsynced:** nothing before an acknowledgement, on either side; that is Kafka's default. `acks=all` waits
  for all in-sync replicas: one on a single node, three in a cluster. The metadata log is fsynced by both. What fsync
  before every acknowledgement costs is on the [durability](durability.md) page.
- **Who is measured:** both brokers as shipped, Kafka with its `server.properties` for a single node and the JVM
  options of its start script (1 GB heap, G1), Penstock with the same properties. Two are changed for both: files of
  deleted topics go after 100 ms (`log.segment.delete.delay.ms=100`), so that the data of many rounds does not pile
  up, and a group does not wait for more members (`group.initial.rebalance.delay.ms=0`). Two lines are left out for
  both, those for socket buffers: they repeat Kafka's own default of 100 KB, while Penstock leaves the sizes to the
  system.
- **Warm-up:** Kafka runs under every load of the measurement for a minute before the first figure.
- **Load:** the raw loader sends requests that were encoded before, over four connections with five in flight each,
  acks=all; the raw reader fetches 1 MB at a time over one connection. It is one Python process; the null broker's
  figures show what it can drive. *Pinned*: each broker has the last core, the loader the first. *Unpinned*: all share
  all cores.
- **CPU** is that of the broker's whole family of processes, from `/proc`.
- **Compressed batches:** Kafka decompresses each to check its records; Penstock checks header and checksum alone.
  Uncompressed batches are walked record by record by both.
- **Latency** is open loop: a request counts from the moment when it was due, so that a stall is charged to every
  request that it held up (no coordinated omission).
- **The host:** a virtual machine shares its processors and gives free memory back. A sample of processor time or
  latency during which the host took processors away (steal in `/proc/stat`) is made again, for every broker alike and
  for a minute and a half of a run at most, and the least disturbed one counts. The first write to memory that was
  given back is dear: before a sample a file of the size that it may write is written and removed, for both brokers.
- **Page cache:** a sample is at most 1 GB and fits the page cache; the disk regime has a part of its own.
""".splitlines()

GROUP_WORDS = {
    tools.PRODUCER: (
        "Kafka's own tool with its own client, which shares the cores with the broker and sets most of the figure.",
        "No compression, idempotence off, four partitions; a quarter of the records more before, as its warm-up.",
        "A share above 100 % lies in the spread of the tool, which compiles itself while it runs.",
    ),
    tools.CONSUMER: (
        "Kafka's own tool as a group of one, four partitions from the beginning, data in the page cache; the time to",
        "join is not counted. The null broker serves the same shape of batches from memory.",
    ),
    latency.PRODUCE: (
        "Batches of 16 KB (records of 1 KB), about 1,240 requests/s over four connections. The loader spins on one",
        "core so that it is never late; the broker has the other.",
    ),
    latency.END_TO_END: (
        "The same batches to one partition; a second connection has a fetch waiting at its end. From the moment when a",
        "batch was due until the consumer has all of it.",
    ),
    curves.GROWTH: ("One partition filled in eight steps, read from its beginning after each.",),
    disk.GROUP: (
        "One topic of four partitions, several times the kernel's limit of dirty memory through each broker; all dirty",
        "pages are on disk before each begins. How much that was is at the top of this page.",
    ),
    cluster.THROUGHPUT: (
        "Three nodes each, `min.insync.replicas=2`, three replicas; six nodes and the loader share the cores. Kafka",
        "has 512 MB of heap a node and was warmed under load for a minute.",
    ),
    start.START: ("The data directory is formatted; the topic does not exist yet and is made by the first request.",),
}

_PAGES = {
    "node": "one node in more shapes, 10,000 partitions on both",
    "client": "the client library beside others, and what groups cost",
    "cluster": "three nodes: failover, 5,000 partitions, where the time goes",
    "spark": "Spark with and without a JVM connector",
    "agent": "what agents carry",
    "scale": "partitions, connections, groups, log size: what one more costs",
    "durability": "fsync before acknowledging, with group commit",
    "durability-hanging": "one disk of three that hangs for seconds",
    "txn": "transactions: commits, reading what they wrote, idle transactional ids",
    "soak": "half an hour at 70 % of the maximum",
}
OTHER_PAGES = tuple(f"- [{name}]({name}.md): {words}" for name, words in _PAGES.items())
