"""The node's settings with dynamic broker configs over them, kept up to date by the published image."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.metadata.entities import CONFIG_BROKER
from penstock.model.config import BadSettings, BrokerSettings

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage

log = logging.getLogger("penstock.settings")


class LiveSettings(BrokerSettings):
    """Reads like `BrokerSettings`, always in force. `properties` stays the file's: it is the static layer."""

    def __init__(self, static: BrokerSettings) -> None:
        super().__init__(static.properties, static)
        self._static = static
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Calls back after dynamic configs changed."""
        self._listeners.append(listener)

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes over what a published image says; subscribe it before whoever reads settings when publishing."""
        own = str(self._static.node_id)
        if not any(key.type == CONFIG_BROKER and key.name in ("", own) for key in delta.configs):
            return
        try:
            settings = self._static.with_dynamic(image.config(CONFIG_BROKER, ""), image.config(CONFIG_BROKER, own))
        except BadSettings as bad:
            # Another node may have accepted what this one cannot take; it keeps what it has.
            log.error("dynamic broker configs are not taken over: %s", "; ".join(bad.problems))
            return
        self._values = dict(settings)
        for name in [name for name in self.__dict__ if name not in _OWN]:
            del self.__dict__[name]  # what was computed from the old values
        for listener in self._listeners:
            listener()


_OWN = frozenset({"properties", "_values", "_static", "_listeners"})
