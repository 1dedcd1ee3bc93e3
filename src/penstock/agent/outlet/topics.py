"""Which topics records may be sent to: asked for before the first record, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from penstock.agent.environment import monotonic_ms
from penstock.client.errors import ClientError, Closed, UnknownTopic
from penstock.client.producer.producer import Producer
from penstock.client.retry import Backoff
from penstock.model.errors import INVALID_TOPIC_EXCEPTION

REFUSED_FOR_MS: Final = 30_000
"""A topic that was not there is asked for again after so long: somebody may have made it."""

_REMEMBERED_MAX: Final = 10_000


class Topics:
    """What is known about topics. Whoever needs one that is not known is woken when it is."""

    def __init__(
        self,
        producer: Producer,
        *,
        unknown_after_ms: int,
        created: bool,
        tell: Callable[[str], None],
        wake: Callable[[], None],
        clock_ms: Callable[[], float] = monotonic_ms,
    ) -> None:
        self._producer, self._created = producer, created
        self._unknown_after_ms = unknown_after_ms
        self._tell, self._wake, self._clock_ms = tell, wake, clock_ms
        self._backoff = Backoff(100, 2_000)
        self._known: set[str] = set()
        self._refused: dict[str, tuple[str, float]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def known(self, topic: str) -> bool:
        return topic in self._known

    def refusal(self, topic: str) -> str | None:
        """Why nothing can be sent to it; None when that is not known."""
        found = self._refused.get(topic)
        if found is None:
            return None
        if self._clock_ms() < found[1]:
            return found[0]
        del self._refused[topic]
        return None

    def ask(self, topic: str) -> None:
        """Finds out, once for all who want to know."""
        if topic not in self._asking:
            self._asking[topic] = asyncio.get_running_loop().create_task(self._ask(topic))

    def forget(self, topic: str) -> None:
        """It was there, and is not any more as it seems."""
        self._known.discard(topic)

    async def gone(self, topic: str) -> bool:
        """Asks again about a topic that records were sent to, and has it made anew if that is done here; True when
        there is no hope for it."""
        self.forget(topic)
        self.ask(topic)
        await asyncio.wait([self._asking[topic]])
        return self.refusal(topic) is not None

    def take_over(self, before: Topics) -> None:
        """What another has found out to be missing."""
        self._refused.update(before._refused)

    def close(self) -> None:
        for task in self._asking.values():
            task.cancel()

    async def _ask(self, topic: str) -> None:
        failures = 0
        missing_since_ms: float | None = None
        try:
            while True:
                try:
                    await self._producer.partitions_for(topic)
                except Closed:
                    return
                except ClientError as wrong:
                    if wrong.error == INVALID_TOPIC_EXCEPTION:
                        self._refuse(topic, f"no topic can be called {topic!r}")
                        return
                    missing_since_ms = self._missing_since(wrong, missing_since_ms)
                    if self._gave_up(missing_since_ms):
                        self._refuse(topic, self._missing_words(topic))
                        return
                    self._tell(f"topic {topic!r}: {wrong.why}; it is tried again")
                else:
                    self._known.add(topic)
                    return
                failures += 1
                await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)
        finally:
            self._asking.pop(topic, None)
            self._wake()

    def _missing_since(self, wrong: ClientError, since_ms: float | None) -> float | None:
        """Only a broker's word counts: while none answers, nobody can tell whether a topic exists."""
        if not isinstance(wrong, UnknownTopic):
            return None
        if since_ms is not None:
            return since_ms
        return self._clock_ms() - min(self._producer.settings.max_block_ms, self._unknown_after_ms)

    def _gave_up(self, missing_since_ms: float | None) -> bool:
        return missing_since_ms is not None and self._clock_ms() - missing_since_ms >= self._unknown_after_ms

    def _missing_words(self, topic: str) -> str:
        why = "brokers do not create it by themselves" if self._created else "output.create_topics is false"
        return f"topic {topic!r} does not exist and {why}: make it with `penstock topic create {topic}`"

    def _refuse(self, topic: str, words: str) -> None:
        if len(self._refused) >= _REMEMBERED_MAX:
            self._refused.clear()
        self._refused[topic] = (words, self._clock_ms() + REFUSED_FOR_MS)
        self._tell(words)
