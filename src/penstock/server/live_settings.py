"""The settings in force: the file's, with the dynamic configs of the published image over them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import CONFIG_BROKER
from penstock.model.config import BadSettings, BrokerSettings

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage

log = logging.getLogger("penstock.settings")


class LiveSettings(BrokerSettings):
    """Reads like `BrokerSettings`, always as of now. `static` is what the file said, `properties` its text."""

    def __init__(self, static: BrokerSettings) -> None:
        super().__init__(static.properties, static)
        self.static = static
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Calls back after dynamic configs changed."""
        self._listeners.append(listener)

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes over what a published image says; subscribe it before whoever reads settings when publishing."""
        own = str(self.static.node_id)
        if not any(key.type == CONFIG_BROKER and key.name in ("", own) for key in delta.configs):
            return
        try:
            settings = self.static.with_dynamic(image.config(CONFIG_BROKER, ""), image.config(CONFIG_BROKER, own))
        except BadSettings as bad:
            # Another node may have accepted what this one cannot take; it keeps what it has.
            log.error("dynamic broker configs are not taken over: %s", "; ".join(bad.problems))
            return
        self._values = dict(settings)
        for computed in self.__dict__.keys() - _OWN:
            del self.__dict__[computed]  # it was cached from the old values
        for listener in self._listeners:
            listener()


_OWN: Final = frozenset({"properties", "_values", "static", "_listeners"})
