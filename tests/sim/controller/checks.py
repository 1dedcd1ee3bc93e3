"""What must hold of a cluster's metadata, looked at from outside."""

from __future__ import annotations

from penstock.controller.index import PartitionIndex
from penstock.metadata.entities import NO_LEADER, PartitionImage
from penstock.metadata.image import ClusterImage


def check_partition(image: ClusterImage, name: str, each: PartitionImage) -> None:
    """I2 and I8, and what a reassignment may look like."""
    replicas, isr = each.replicas, each.isr
    assert len(set(replicas)) == len(replicas) == len(each.directories), f"{name}: {each}"
    assert len(set(isr)) == len(isr), f"{name} has somebody in its ISR twice: {each}"
    assert set(isr) <= set(replicas), f"{name} has strangers in its ISR: {each}"
    assert set(each.elr) <= set(replicas), f"{name} has strangers in its ELR: {each}"
    assert not set(isr) & set(each.elr), f"{name}: somebody is in ISR and ELR: {each}"
    assert set(each.adding) | set(each.removing) <= set(replicas), f"{name}: {each}"
    assert not each.reassigning or not set(each.target_replicas) <= set(isr), f"{name} moves for ever: {each}"
    if each.leader != NO_LEADER:
        assert each.leader in isr, f"{name} has a leader outside its ISR: {each}"
    elif not image.elr_enabled and len(isr) == 1:
        return  # who was last in sync is remembered, whatever became of it
    for member in isr:
        broker = image.brokers.get(member)
        assert broker is not None, f"{name}: {member} is in the ISR and not registered: {each}"
        assert broker.active, f"{name}: {member} is in the ISR and fenced or leaving: {each}"


def check_step(name: str, old: PartitionImage, new: PartitionImage) -> None:
    """I1: epochs rise, and one leader epoch has one leader."""
    assert new.partition_epoch > old.partition_epoch, f"{name} changed in one partition epoch: {old} {new}"
    assert new.leader_epoch >= old.leader_epoch, f"{name}: the leader epoch fell: {old} {new}"
    if new.leader != old.leader or not set(old.replicas) <= set(new.replicas):
        assert new.leader_epoch > old.leader_epoch, f"{name}: two leaders in one epoch: {old} {new}"


def check_index(image: ClusterImage, index: PartitionIndex) -> None:
    """The index is what one made anew from the image would be."""
    anew = PartitionIndex(image)
    for table in PartitionIndex.__slots__:
        assert getattr(index, table) == getattr(anew, table), f"the index is wrong about {table}"
