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
    from penstock.controller.decision import ControllerSettings
    from penstock.metadata.image import ClusterImage

KEPT_MAX: Final = 100

Told = list[CreateTopicsResponse.CreatableTopicConfigs]
_Configs = tuple[tuple[str, str | None], ...]


class TopicConfigs:
    """What it remembers holds until a broker's config changes: then it must be told to `forget`."""

    __slots__ = ("_checked", "_describer", "_image", "_settings", "_told")

    def __init__(self, image: ClusterImage, settings: ControllerSettings) -> None:
        self._image, self._settings = image, settings
        self._checked: set[_Configs] = set()
        self._told: dict[_Configs, Told] = {}
        self._describer: ConfigDescriber | None = None

    def forget(self) -> None:
        self._checked.clear()
        self._told.clear()
        self._describer = None

    def check(self, configs: Mapping[str, str | None]) -> None:
        """Refused unless a topic may have these configs."""
        key = tuple(sorted(configs.items()))
        if key not in self._checked:
            validate_topic_configs(configs, self._settings.broker)
            if len(self._checked) >= KEPT_MAX:
                self._checked.clear()
            self._checked.add(key)

    def told(self, configs: Mapping[str, str | None]) -> Told:
        """What is in force in a topic with these configs. Shared by replies: nobody may change it."""
        key = tuple(sorted(configs.items()))
        found = self._told.get(key)
        if found is None:
            if len(self._told) >= KEPT_MAX:
                self._told.clear()
            found = self._told[key] = self._describe(configs)
        return found

    def _describe(self, configs: Mapping[str, str | None]) -> Told:
        if self._describer is None:
            image = self._image
            self._describer = ConfigDescriber(
                image.config(CONFIG_BROKER, str(self._settings.node_id)),
                image.config(CONFIG_BROKER, ""),
                self._settings.broker.properties,
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
