"""Sets logs aside that the cluster does not know, and deletes them when they have been set aside for long enough.

A topic that was deleted, or a replica that was moved, while this node was away is found at its start. Nobody asked this
node to delete it, and whoever restored the metadata from an old copy may want it back: so it is kept for
`penstock.log.dir.stray.retention.ms`. What this node should have after all is never deleted here, and neither are
records of which nobody can say whose they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import StorageFailed
from penstock.model.ids import Millis, PartitionKey
from penstock.server.loops.slices import in_slices
from penstock.storage.strays import look_into

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Offload
    from penstock.storage.store import LogStore
    from penstock.storage.strays import Stray

log = logging.getLogger("penstock.strays")

RETENTION: Final = "penstock.log.dir.stray.retention.ms"


class StrayDriver:
    """`image` is what the cluster is now, as this broker knows it."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: LogStore,
        clock: Clock,
        offload: Offload,
        *,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._settings, self._store, self._clock, self._offload = settings, store, clock, offload
        self._image = image

    def set_aside(self) -> None:
        """At the start, with an image that is up to date: logs that are not ours go aside, and copies of them go."""
        now = self._clock.now_ms()
        for key in list(self._store.logs):
            if not self._ours(key):
                found = self._store.logs[key]
                log.warning(
                    "%s is not in the metadata; %s is set aside under a name that ends in -stray%s",
                    found.name,
                    found.directory,
                    self._fate(now),
                )
                self._store.set_aside(key, now=now)
        for key in list(self._store.futures):
            if not self._ours(key):
                self._store.let_go(key, now=now, future=True)

    async def look(self) -> None:
        """Looks into those that are new, and dooms those whose time is over."""
        store = self._store
        for stray in list(store.strays.values()):
            if stray.facts is None and stray.directory.online:
                await self._look_into(stray)
        retention_ms, now = self._settings.number(RETENTION), self._clock.now_ms()
        if retention_ms >= 0:
            due = [each for each in store.strays.values() if each.facts and each.facts.since + retention_ms <= now]
            await in_slices(self._clock, due, self._doom)

    async def _look_into(self, stray: Stray) -> None:
        files, now = self._store.files, self._clock.now_ms()
        try:
            stray.facts = facts = await self._offload.call(look_into, files, stray.path, stray.since, now)
        except FileNotFoundError:
            self._store.strays.pop(stray.path, None)  # somebody took it away
            return
        except OSError as error:
            raise StorageFailed(stray.path, f"cannot be looked into: {error}") from error
        if facts.topic_id is None and facts.has_records:
            log.warning("%s does not say whose records it has, and stays until somebody removes it", stray.path)
        elif stray.since is None:
            log.warning("%s was set aside%s", stray.path, self._fate(facts.since))

    def _doom(self, stray: Stray) -> None:
        facts = stray.facts
        if facts is None or self._store.strays.get(stray.path) is not stray:
            return  # its disk failed meanwhile
        if facts.topic_id is None:
            wanted = facts.has_records
        else:
            wanted = self._ours(PartitionKey(facts.topic_id, stray.name.partition))
        if not wanted:
            log.info("%s has been set aside since %s and is deleted", stray.path, _moment(facts.since))
            self._store.doom(stray)

    def _ours(self, key: PartitionKey) -> bool:
        """Whether this node should have a replica of it."""
        found = self._image().partition(key.topic_id, key.partition)
        return found is not None and self._settings.node_id in found.replicas

    def _fate(self, since: Millis) -> str:
        retention_ms = self._settings.number(RETENTION)
        if retention_ms < 0:
            return f", and stays until somebody removes it ({RETENTION}={retention_ms})"
        return (
            f", and deleted after {_moment(since + retention_ms)}: "
            f"to keep it, move it to another place, or set {RETENTION} to -1"
        )


def _moment(at_ms: int) -> str:
    """In words for people, whatever the number."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ms / 1_000))
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms since 1970"
