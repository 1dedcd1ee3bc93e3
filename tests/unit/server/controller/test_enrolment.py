"""A controller stays registered, whatever the others forget."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.metadata.delta import Delta
from penstock.metadata.entities import ControllerImage
from penstock.metadata.features import METADATA_3_7_CONTROLLERS, METADATA_VERSION
from penstock.metadata.image import ClusterImage
from penstock.model.errors import REQUEST_TIMED_OUT, Refused
from penstock.model.ids import NodeId, Uuid
from penstock.protocol.messages.controller_registration import ControllerRegistrationResponse
from penstock.server.controller import enrolment as controller_enrolment
from penstock.server.controller.enrolment import ControllerEnrolment

MINE, EARLIER = Uuid(b"m" * 16), Uuid(b"e" * 16)


def image(level: int, registered: Uuid | None = None) -> ClusterImage:
    made = ClusterImage()
    made.features[METADATA_VERSION] = level
    if registered is not None:
        made.controllers[NodeId(1)] = ControllerImage(NodeId(1), registered, ())
    return made


async def asked_after(*images: ClusterImage, refused_first: int = 0) -> int:
    """How often the controller was asked when these images were published."""
    asked: list[Any] = []

    async def ask(request: Any, _version: int) -> Any:
        asked.append(request)
        if len(asked) <= refused_first:
            raise Refused(REQUEST_TIMED_OUT, "nobody is there")
        return ControllerRegistrationResponse()

    enrolment = ControllerEnrolment(NodeId(1), MINE, ask, [], "host")
    for each in images:
        enrolment.follow(each, Delta())
        while enrolment._enrolling is not None:
            await asyncio.sleep(0)
    await enrolment.close()
    return len(asked)


def test_it_registers_once_per_life_where_the_cluster_knows_such_registrations() -> None:
    new = METADATA_3_7_CONTROLLERS
    assert asyncio.run(asked_after(image(new - 1))) == 0
    assert asyncio.run(asked_after(image(new))) == 1
    assert asyncio.run(asked_after(image(new, EARLIER))) == 1
    assert asyncio.run(asked_after(image(new, MINE), image(new, MINE))) == 0
    assert asyncio.run(asked_after(image(new - 1), image(new))) == 1


def test_it_asks_until_somebody_answers(monkeypatch: Any) -> None:
    monkeypatch.setattr(controller_enrolment, "RETRY_MS", 1)
    assert asyncio.run(asked_after(image(METADATA_3_7_CONTROLLERS), refused_first=3)) == 4
