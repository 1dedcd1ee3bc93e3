"""Who decides what the cluster is: requests and events in, metadata records and a reply out.

Duty: look at the working image and decide. A decision is records and a reply; nothing changes until the same records
come back through `Controller.apply`, which is also how a log is replayed. The driver appends `plan_batches(decision)`
to the metadata log, tells `apply` at once and releases the reply when the records are committed.

May import: `model`, `protocol`, `metadata`; neither `quorum` nor `storage`. Pure: time comes in as `now` (monotonic
milliseconds), the next write offset as `next_offset` (broker epochs are offsets), randomness through the constructor.

Invariants (facts I1, I2, I8): leader and partition epochs only rise; leader in ISR, ISR within replicas, ELR apart from
ISR; a fenced broker neither leads nor is in sync; one decision is atomic in the log, however many records it has. What
may come true bit by bit (a broker of thousands of partitions goes) is several decisions. No decision looks at every
partition: `index.py` follows the image and knows where to look. What one partition can tell of these is asserted with
every record that changes it (`invariants.py`).

Read `controller.py` (the doors), then `elections.py` (how a partition changes), then the decider you need.
"""
