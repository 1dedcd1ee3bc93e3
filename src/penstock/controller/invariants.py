"""What must hold of a partition whenever it changes in the working image. A record that breaks it was decided wrongly.

Looked at for the partition that changed and for no other, so it costs a microsecond a record. That brokers in sync are
registered and not fenced is not among it: in the middle of a decision that need not hold.
"""

from __future__ import annotations

from penstock.metadata.entities import NO_LEADER, PartitionImage


def check_change(old: PartitionImage | None, now: PartitionImage) -> None:
    """A partition is `now`, and was `old` before; None when it is new."""
    replicas, isr = now.replicas, now.isr
    assert len(now.directories) == len(replicas), "every replica lies in a directory"
    for node in isr:
        assert node in replicas, "who is in sync is a replica"
    for node in now.elr:
        assert node not in isr, "who is eligible is not in sync"
        assert node in replicas, "who is eligible is a replica"
    leader = now.leader
    assert leader == NO_LEADER or leader in isr, "a leader is in sync"
    if old is not None:
        assert now.partition_epoch > old.partition_epoch, "a change raises the partition epoch"
        assert now.leader_epoch >= old.leader_epoch, "leader epochs never fall"
        assert leader == old.leader or now.leader_epoch > old.leader_epoch, "an epoch has one leader"
