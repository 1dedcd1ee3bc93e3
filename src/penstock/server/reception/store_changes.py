"""New certificates by AlterConfigs: whether a listener could take them, asked before the change is accepted.

Only this node can tell, because only it has the files. Each listener is asked on its own loop, and files are read by
threads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from penstock.metadata.entities import CONFIG_BROKER
from penstock.model.config import BadSettings
from penstock.model.errors import INVALID_REQUEST, PenstockError, Refused
from penstock.server.securing import prefixed_name

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.server.loops.crossing import Side
    from penstock.server.reception.listener import Listeners
    from penstock.server.reception.tls_door import TlsDoor


class StoreChanges:
    """Lives on the side of the brokers' listeners; `control` leads to the one of the controllers'."""

    def __init__(self, static: BrokerSettings, listeners: Listeners, control: Side) -> None:
        self._static, self._listeners, self._control = static, listeners, control

    async def check(self, image: ClusterImage, own: Mapping[str, str], named: Collection[str]) -> None:
        """Refused when a listener that one of `named` belongs to could not go on with `own`, the node's dynamic
        configs as they would be."""
        for listener in self._listeners:
            door = None if listener.entrance is None else listener.entrance.tls
            prefix = prefixed_name(listener.info.name, "ssl.")
            if door is None or not any(name.startswith(prefix) for name in named):
                continue
            settings = self._after(image, own)
            try:
                if listener.info.for_controllers:
                    await self._control.call(_check, door, settings)
                else:
                    await _check(door, settings)
            except PenstockError as unusable:
                if isinstance(unusable, Refused):
                    raise
                raise Refused(INVALID_REQUEST, f"listener {listener.info.name}: {unusable}") from None

    def _after(self, image: ClusterImage, own: Mapping[str, str]) -> BrokerSettings:
        try:
            return self._static.with_dynamic(image.config(CONFIG_BROKER, ""), own)
        except BadSettings as bad:
            raise Refused(INVALID_REQUEST, "; ".join(bad.problems)) from None


async def _check(door: TlsDoor, settings: BrokerSettings) -> None:
    await door.check(settings)
