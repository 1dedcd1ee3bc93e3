"""What changed between two publications of an image.

A delta says where to look, not what was there: consumers compare the published image with what they hold themselves.
Only deleted topics are kept as values, because nobody could look them up any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from penstock.metadata.entities import ConfigKey, TopicImage
from penstock.model.ids import Uuid

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Delta:
    """Changes since the last publication. A topic created and deleted in between is in neither table.

    `partitions` has every partition whose state changed, also those of created topics, by topic id. `security` is true
    when ACLs, SCRAM credentials or delegation tokens changed.
    """

    created: dict[Uuid, str] = field(default_factory=dict)
    deleted: dict[Uuid, TopicImage] = field(default_factory=dict)
    partitions: dict[Uuid, set[int]] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)
    controllers: set[int] = field(default_factory=set)
    configs: set[ConfigKey] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    producer_ids: bool = False
    quotas: bool = False
    security: bool = False

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(
            self.created
            or self.deleted
            or self.partitions
            or self.brokers
            or self.controllers
            or self.configs
            or self.features
            or self.producer_ids
            or self.quotas
            or self.security
        )

    def partition_changed(self, topic_id: Uuid, partition: int) -> None:
        changed = self.partitions.get(topic_id)
        if changed is None:
            changed = self.partitions[topic_id] = set()
        changed.add(partition)

    def topic_deleted(self, topic: TopicImage) -> None:
        self.partitions.pop(topic.id, None)
        if self.created.pop(topic.id, None) is None:
            self.deleted[topic.id] = topic


def delta_between(old: ClusterImage, new: ClusterImage) -> Delta:
    """The delta that leads from one image to another, for a node whose image was replaced by a snapshot."""
    delta = Delta(
        brokers=_differing(old.brokers, new.brokers),
        controllers=_differing(old.controllers, new.controllers),
        configs=_differing(old.configs, new.configs),
        features=_differing(old.features, new.features),
        producer_ids=old.producer_ids != new.producer_ids,
        quotas=old.quotas != new.quotas,
        security=(old.acls, old.scram, old.tokens) != (new.acls, new.scram, new.tokens),
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
