"""Configs of new topics: whether they may be, and what is in force with them. Topics are mostly alike, so it remembers.

To describe a topic's thirty configs with their layers costs more than all the rest of its creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import CONFIG_BROKER
from penstock.model.config import ConfigDescriber, validate_topic_configs
from penstock.protocol.messages.create_topics import CreateTopicsResponse

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings

KEPT_MAX: Final = 100

DescribedConfigs = list[CreateTopicsResponse.CreatableTopicConfigs]
_Configs = tuple[tuple[str, str | None], ...]


class TopicConfigs:
    """What it remembers holds until a broker's config changes: then it must be told to `forget`."""

    __slots__ = ("_broker", "_checked", "_described", "_describer", "_image")

    def __init__(self, image: ClusterImage, broker: BrokerSettings) -> None:
        self._image, self._broker = image, broker
        self._checked: set[_Configs] = set()
        self._described: dict[_Configs, DescribedConfigs] = {}
        self._describer: ConfigDescriber | None = None

    def forget(self) -> None:
        self._checked.clear()
        self._described.clear()
        self._describer = None

    def check(self, configs: Mapping[str, str | None]) -> None:
        """Refused unless a topic may have these configs."""
        key = tuple(sorted(configs.items()))
        if key not in self._checked:
            validate_topic_configs(configs, self._broker)
            if len(self._checked) >= KEPT_MAX:
                self._checked.clear()
            self._checked.add(key)

    def described(self, configs: Mapping[str, str | None]) -> DescribedConfigs:
        """What is in force in a topic with these configs. Shared by replies: nobody may change it."""
        key = tuple(sorted(configs.items()))
        found = self._described.get(key)
        if found is None:
            if len(self._described) >= KEPT_MAX:
                self._described.clear()
            found = self._described[key] = self._look_up(configs)
        return found

    def _look_up(self, configs: Mapping[str, str | None]) -> DescribedConfigs:
        if self._describer is None:
            image = self._image
            self._describer = ConfigDescriber(
                image.config(CONFIG_BROKER, str(self._broker.node_id)),
                image.config(CONFIG_BROKER, ""),
                self._broker.properties,
            )
        overrides = {name: value for name, value in configs.items() if value is not None}
        return [
            CreateTopicsResponse.CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in self._describer.topic(overrides)
        ]
