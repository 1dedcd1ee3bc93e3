"""The settings in force: the file's, with the dynamic configs of the cluster over them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.model.config import BadSettings, BrokerSettings, TopicSettings

if TYPE_CHECKING:
    from penstock.model.config.definition import ConfigValue

log = logging.getLogger("penstock.settings")


class LiveSettings:
    """Reads like `BrokerSettings`, always as of now. Whoever wants to act on a change listens."""

    __slots__ = ("_current", "_listeners", "static")

    def __init__(self, static: BrokerSettings) -> None:
        self.static = static
        self._current = static
        self._listeners: list[Callable[[BrokerSettings], None]] = []

    def __getitem__(self, name: str) -> ConfigValue:
        return self._current[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current, name)

    @property
    def current(self) -> BrokerSettings:
        return self._current

    def topic(self, overrides: Mapping[str, str]) -> TopicSettings:
        return self._current.topic(overrides)

    def listen(self, listener: Callable[[BrokerSettings], None]) -> None:
        """Calls `listener` after every change."""
        self._listeners.append(listener)

    def apply(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Takes the dynamic configs of the published image. What does not make sense is logged and left out."""
        try:
            self._current = self.static.with_dynamic(cluster, broker)
        except BadSettings as bad:
            log.error("dynamic configs are ignored until they are mended: %s", bad)
            return
        for listener in self._listeners:
            listener(self._current)
