"""What changed between two publications of an image.

A delta says where to look, not what was there: consumers compare the published image with what they hold themselves.
Only deleted topics are kept as values, because nobody could look them up any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.metadata.entities import ConfigKey, TopicImage
from penstock.model.ids import Uuid


@dataclass(slots=True)
class Delta:
    """Changes since the last publication. A topic created and deleted in between is in neither table.

    `partitions` has every partition whose state changed, also those of created topics, by topic id. `acls`, `scram` and
    `tokens` are the keys of the image's tables, so that an index follows one ACL at a price that does not depend on how
    many there are, and a login whose password changed can be found.
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
    acls: set[Uuid] = field(default_factory=set)
    scram: set[tuple[int, str]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)

    @property
    def security(self) -> bool:
        """Whether ACLs, SCRAM credentials or delegation tokens changed."""
        return bool(self.acls or self.scram or self.tokens)

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
