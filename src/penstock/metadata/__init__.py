"""What the cluster is, as a value: metadata records, the image they build, the delta between two publications.

Duty: frame and unframe the records of the metadata log; apply them to a `ClusterImage`; say what changed (`Delta`);
turn an image into the ordered records of a snapshot and back. Brokers need this room; who decides the records is
`controller`.

May import: `model`, `protocol`. Pure: no clock, file, socket, thread or randomness.

Invariants:
- `ClusterImage.apply` is the only way an image changes, on every node alike, in log order.
- Nothing of a metadata transaction shows in the image before its EndTransactionRecord.
- image -> `snapshot_records` -> image is the identity, also for records that nothing here serves yet (ACLs, quotas,
  SCRAM credentials, delegation tokens): a data directory written by Apache Kafka survives.
- Topics and partitions are keyed by topic id; names are resolved at the edge.

Read `entities.py` (what there is), then `image.py`.
"""
