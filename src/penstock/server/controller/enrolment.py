"""Tells the active controller where this node's controller listens and what it supports: ControllerRegistration.

The registration is a record like any other, so it outlives failovers. It is made when the published image lacks it:
at the first start, after a restart (each process has an incarnation of its own), or when the cluster's level has risen
to one that knows such registrations.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.metadata.features import METADATA_3_7_CONTROLLERS, SUPPORTED
from penstock.model.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from penstock.model.errors import NONE, Refused, error_of
from penstock.model.ids import NodeId, Uuid
from penstock.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.server.controller.channel import Ask

log = logging.getLogger("penstock.lifecycle")

RETRY_MS: Final = 500


class ControllerEnrolment:
    """Keeps this controller registered. `follow` is subscribed to publications."""

    def __init__(
        self,
        node_id: NodeId,
        incarnation_id: Uuid,
        ask: Ask,
        endpoints: Iterable[Endpoint],
        own_host: str,
    ) -> None:
        self._node_id, self._incarnation_id, self._ask = node_id, incarnation_id, ask
        self._endpoints, self._own_host = tuple(endpoints), own_host
        self._image: ClusterImage | None = None
        self._enrolling: asyncio.Task[None] | None = None

    def follow(self, image: ClusterImage, _delta: Delta) -> None:
        self._image = image
        if self._enrolling is None and self._missing():
            self._enrolling = duty(self._enrol(), name="controller registration")

    async def close(self) -> None:
        if self._enrolling is not None:
            self._enrolling.cancel()
            await asyncio.gather(self._enrolling, return_exceptions=True)

    def _missing(self) -> bool:
        image = self._image
        # Clusters below metadata.version 3.7 know no controller registrations and do without.
        if image is None or image.metadata_version < METADATA_3_7_CONTROLLERS:
            return False
        known = image.controllers.get(self._node_id)
        return known is None or known.incarnation_id != self._incarnation_id

    async def _enrol(self) -> None:
        try:
            while self._missing():
                try:
                    reply = await self._ask(self.request(), 0)
                    assert isinstance(reply, ControllerRegistrationResponse), "a request is answered with its own reply"
                except Refused as refusal:
                    log.debug("this controller is not registered yet: %s", refusal)
                else:
                    if reply.error_code == NONE.code:
                        return
                    why = error_of(reply.error_code).name
                    log.warning("this controller is not registered: %s: %s", why, reply.error_message)
                await asyncio.sleep(RETRY_MS / 1_000)
        finally:
            self._enrolling = None

    def request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                ControllerRegistrationRequest.Listener(
                    name=each.name,
                    host=each.host or self._own_host,
                    port=each.port,
                    security_protocol=SECURITY_PROTOCOLS.index(each.security_protocol),
                )
                for each in self._endpoints
            ],
            features=[
                ControllerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
        )
