"""A desk for the deciders that no request reaches yet: a controller's world, and decisions applied to it."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from penstock.controller.decision import ControllerSettings, Decision, World
from penstock.controller.index import PartitionIndex
from penstock.controller.sessions import Sessions
from penstock.controller.topic_configs import TopicConfigs
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import frame_record, unframe_record
from penstock.model.ids import Epoch, Offset
from penstock.security.acl_index import AclIndex
from tests.unit.controller.desk import CLUSTER, broker_settings


@cache
def _settings() -> ControllerSettings:
    return ControllerSettings.of(broker_settings(), CLUSTER)


class SecurityDesk:
    """A world with an image at a level of metadata.version, and the index of its ACLs."""

    def __init__(self, level: int = 30) -> None:
        self.image = ClusterImage()
        self.image.features["metadata.version"] = level
        index, configs = PartitionIndex(self.image), TopicConfigs(self.image, _settings().broker)
        self.world = World(self.image, Random(0), _settings(), Sessions(9_000), index, configs)
        self.acls = AclIndex()

    def do(self, decision: Decision) -> Any:
        """Applies what was decided, through the bytes of the log; the reply."""
        for record, version in decision.records:
            read = unframe_record(frame_record(record, version))
            self.image.apply(read, Offset(self.image.offset + 1), Epoch(1))
        self.acls.follow(self.image, self.image.take_delta())
        return decision.reply

    def put(self, *records: Any) -> None:
        self.do(Decision([(record, 0) for record in records]))
