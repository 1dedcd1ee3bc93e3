"""Makes internal topics when somebody needs them first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import NONE, TOPIC_ALREADY_EXISTS, Refused, error_of
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.server.internal_topics import internal_topic

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings

_CREATE_TOPICS_VERSION: Final = 7


class TopicMaker:
    """Asks the controller for an internal topic; many who need it at once wait for one answer.

    `what` is what the topic is for; the logger of that name says why it cannot be made.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        submit: Callable[[CreateTopicsRequest, int], Awaitable[object]],
        what: str,
        brokers: Callable[[], int],
    ) -> None:
        """`brokers` says how many the cluster has."""
        self._settings, self._submit, self._brokers = settings, submit, brokers
        self._log = logging.getLogger(f"penstock.{what}")
        self._making: dict[str, asyncio.Task[bool]] = {}

    async def make(self, name: str) -> bool:
        """Whether the controller has the topic now; why not is in the log."""
        making = self._making.get(name)
        if making is None:
            making = asyncio.get_running_loop().create_task(self._make(name), name=f"create {name}")
            self._making[name] = making
            making.add_done_callback(lambda _done: self._making.pop(name, None))
        return await asyncio.shield(making)

    async def _make(self, name: str) -> bool:
        wanted = internal_topic(self._settings, name, self._brokers())
        assert wanted is not None, "internal topics have settings of their own"
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=self._settings.number("request.timeout.ms"))
        try:
            reply = await self._submit(request, _CREATE_TOPICS_VERSION)
        except Refused as refusal:
            self._log.warning("%s is not created: %s", name, refusal)
            return False
        assert isinstance(reply, CreateTopicsResponse), "the answer is of the API that was asked"
        (result,) = reply.topics
        if result.error_code not in (NONE.code, TOPIC_ALREADY_EXISTS.code):
            self._log.warning("%s is not created: %s: %s", name, error_of(result.error_code).name, result.error_message)
            return False
        return True
