"""The delta between two images that did not follow from each other."""

from __future__ import annotations

from typing import TypeVar

from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage

K = TypeVar("K")
V = TypeVar("V")


def delta_between(old: ClusterImage, new: ClusterImage) -> Delta:
    """The delta that leads from one image to another, for a node whose image was replaced by a snapshot."""
    delta = Delta(
        brokers=_differing(old.brokers, new.brokers),
        controllers=_differing(old.controllers, new.controllers),
        configs=_differing(old.configs, new.configs),
        features=_differing(old.features, new.features),
        producer_ids=old.producer_ids != new.producer_ids,
        quotas=old.quotas != new.quotas,
        acls=_differing(old.acls, new.acls),
        scram=_differing(old.scram, new.scram),
        tokens=_differing(old.tokens, new.tokens),
    )
    for topic_id, topic in old.topics.items():
        if topic_id not in new.topics:
            delta.deleted[topic_id] = topic
    for topic_id, topic in new.topics.items():
        before = old.topics.get(topic_id)
        known = [] if before is None else before.partitions
        if before is None:
            delta.created[topic_id] = topic.name
        changed = {i for i, now in enumerate(topic.partitions) if i >= len(known) or known[i] != now}
        if changed:
            delta.partitions[topic_id] = changed
    return delta


def _differing(old: dict[K, V], new: dict[K, V]) -> set[K]:
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
