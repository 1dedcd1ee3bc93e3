"""Where the log of a replica lies on this node, or is to be made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from penstock.model.errors import KAFKA_STORAGE_ERROR, Refused, StorageFailed
from penstock.model.ids import DIRECTORY_UNASSIGNED

if TYPE_CHECKING:
    from penstock.metadata.entities import PartitionImage
    from penstock.model.config import TopicSettings
    from penstock.model.ids import Millis, NodeId, PartitionKey, TopicPartition, Uuid
    from penstock.storage.log import Log
    from penstock.storage.log_directory import LogDirectory
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.partitions")

PREFERRED_MAX: Final = 10_000


class Placement:
    """Finds logs in the store, makes those that are missing, and lets them go."""

    def __init__(self, me: NodeId, store: LogStore) -> None:
        self._me, self._store = me, store
        # Where replicas that are not here yet are to be made, should they come. Gone with the process, as in Kafka.
        self._preferred: dict[TopicPartition, LogDirectory] = {}

    def prefer(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Remembers where to make a replica that this node may be given later."""
        self._preferred[name] = directory
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def log_for(
        self,
        key: PartitionKey,
        name: TopicPartition,
        image: PartitionImage,
        settings: TopicSettings,
        *,
        is_new: bool,
        now: Millis,
    ) -> Log | None:
        """The log of a replica, made if there is none; None when it can be had neither way, which is logged."""
        try:
            found = self._store.get(key) or self._moved_before(key, image, now)
            if found is None:
                directory = self._directory_for(name, image, is_new)
                found = self._store.create(name, key.topic_id, settings, directory, now=now)
            found.settings = settings
        except (StorageFailed, Refused) as failure:
            log.error("%s has no log: %s", name, failure)
            return None
        return found

    def let_go(self, key: PartitionKey, now: Millis) -> None:
        """The replica is not this node's any more: its log goes, and a copy of it that was under way."""
        self._store.let_go(key, now=now)
        self._store.let_go(key, now=now, future=True)

    def _moved_before(self, key: PartitionKey, image: PartitionImage, now: Millis) -> Log | None:
        """A copy that is all there is of the replica and lies where the metadata has it: only its name is to change."""
        future = self._store.futures.get(key)
        if future is None or self._store.directory_of(future).id != image.directory_of(self._me):
            return None
        return self._store.promote(key, now=now)

    def _directory_for(self, name: TopicPartition, image: PartitionImage, is_new: bool) -> Uuid | None:
        """Where to make a log; None is the directory with the fewest. Refuses when it may exist where nobody can look.

        A log made anew beside one in an offline directory would hide every record in that one.
        """
        preferred = self._preferred.pop(name, None)
        if preferred is not None and preferred.online:
            return preferred.id
        wanted = image.directory_of(self._me)
        if wanted is not None and any(each.online and each.id == wanted for each in self._store.directories):
            return wanted
        offline = [each.path for each in self._store.directories if not each.online]
        if offline and not (is_new and wanted == DIRECTORY_UNASSIGNED):
            raise Refused(KAFKA_STORAGE_ERROR, f"its log may be in {', '.join(offline)}, which is offline")
        return None
