"""All logs of a node, over several directories. A directory that fails goes offline alone; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from heapq import heappop, heappush

from penstock.model.errors import (
    INCONSISTENT_TOPIC_ID,
    KAFKA_STORAGE_ERROR,
    LOG_DIR_NOT_FOUND,
    Corrupt,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Millis, Offset, PartitionKey, TopicPartition, Uuid
from penstock.model.ports import Files
from penstock.storage.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.storage.clean_shutdown import UNKNOWN_BROKER_EPOCH
from penstock.storage.flushing import Syncable
from penstock.storage.log import DEFAULT_PRODUCER_EXPIRATION_MS, Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.names import PARTITION_METADATA, Kind, parse_partition_directory, partition_directory
from penstock.storage.partition_metadata import read_partition_metadata
from penstock.storage.reports import DirectoryReport, report_of
from penstock.storage.settings import LogSettings

ONE_SYNC_FROM = 64


class LogStore:
    """Logs by (topic id, partition); a replica that moves to another directory is a future log until it takes over."""

    def __init__(
        self,
        files: Files,
        directories: Sequence[str],
        *,
        settings_for: Callable[[TopicPartition], LogSettings],
        new_uuid: Callable[[], Uuid],
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
    ) -> None:
        self.files = files
        self.directories = [LogDirectory(files, path) for path in directories]
        self.settings_for = settings_for
        self._new_uuid = new_uuid
        self._producer_expiration_ms = producer_expiration_ms
        self.logs: dict[PartitionKey, Log] = {}
        self.futures: dict[PartitionKey, Log] = {}
        # Told of each directory that goes offline, with the partitions lost with it, whoever noticed.
        self.on_failed: Callable[[LogDirectory, list[PartitionKey]], None] = lambda _directory, _lost: None
        # Partitions whose directory went offline, with the reason.
        self._lost: dict[PartitionKey, str] = {}
        self._homes: dict[Log, LogDirectory] = {}
        # A heap, by the time when they may go; no two have the same path.
        self._doomed: list[tuple[int, str, LogDirectory]] = []
        # The broker epoch of the last clean stop; -1 when one of the directories was not closed cleanly.
        self.clean_broker_epoch = UNKNOWN_BROKER_EPOCH
        self._cluster: tuple[str, int] = ("", -1)

    # -- opening and closing

    def open(self, *, cluster_id: str, node_id: int, now: Millis) -> None:
        """Opens every directory and every log in it. Raises StorageFailed only when no directory works."""
        for _ in self.opening(cluster_id=cluster_id, node_id=node_id, now=now):
            pass

    def opening(self, *, cluster_id: str, node_id: int, now: Millis) -> Iterator[Log]:
        """`open`, one log at a time, for a caller that has other things to do in between."""
        self._cluster = (cluster_id, node_id)
        for directory in self.directories:
            try:
                directory.open(cluster_id, node_id, self._new_uuid)
            except OSError as error:
                directory.fail(str(error))
        epochs = {directory.clean_broker_epoch for directory in self.directories if directory.online}
        if len(epochs) == 1 and (epoch := epochs.pop()) is not None:
            self.clean_broker_epoch = epoch
        for directory in self.directories:
            if directory.online:
                yield from self._open_logs(directory, now)
        if not any(directory.online for directory in self.directories):
            reasons = "; ".join(f"{directory.path}: {directory.why_offline}" for directory in self.directories)
            raise StorageFailed(self.directories[0].path, f"no log directory works: {reasons}")

    def revive(self, path: str, now: Millis) -> None:
        """Opens a directory again that went offline: its logs are read anew from disk."""
        directory = self.directory_at(path)
        assert not directory.online, "only an offline directory comes back"
        try:
            directory.open(*self._cluster, self._new_uuid)
            for _ in self._open_logs(directory, now):
                pass
        except OSError as error:
            self.fail(directory, str(error))
            raise StorageFailed(path, str(error)) from error

    def _open_logs(self, directory: LogDirectory, now: Millis) -> Iterator[Log]:
        try:
            names = self.files.listdir(directory.path)
        except OSError as error:
            self.fail(directory, str(error))
            return
        for entry in names:
            parsed = parse_partition_directory(entry)
            if parsed is None or parsed[1] is Kind.STRAY or not self.files.isdir(f"{directory.path}/{entry}"):
                continue
            name, kind = parsed
            if kind is Kind.DELETE:
                heappush(self._doomed, (now, f"{directory.path}/{entry}", directory))
                continue
            try:
                log = self._open_log(directory, entry, name, kind, now)
            except (StorageFailed, OSError) as error:
                self.fail(directory, str(error))
                return
            if log is not None:
                yield log

    def _open_log(
        self, directory: LogDirectory, entry: str, name: TopicPartition, kind: Kind, now: Millis
    ) -> Log | None:
        path = f"{directory.path}/{entry}"
        try:
            topic_id = read_partition_metadata(self.files, f"{path}/{PARTITION_METADATA}")
        except Corrupt:
            topic_id = None
        if topic_id is None:
            # Nobody can say whose data this is: kept, but not served.
            self._set_aside(path, name)
            return None
        # A future log has a recovery point here; where it starts and what is committed is the current log's to say.
        future = kind is Kind.FUTURE
        settings = self.settings_for(name)
        compacted = settings.compacts or name in directory.cleaner_offsets
        log = Log.open(
            self.files,
            path,
            name,
            topic_id,
            settings,
            now=now,
            clean=directory.clean,
            recovery_point=directory.recovery_points.get(name, 0),
            log_start=0 if future else directory.log_starts.get(name, 0),
            high_watermark=0 if future else directory.high_watermarks.get(name, 0),
            gapless=not compacted and not future,
            producer_expiration_ms=self._producer_expiration_ms,
        )
        return self._take_in(PartitionKey(topic_id, name.partition), log, directory, future)

    def _take_in(self, key: PartitionKey, log: Log, directory: LogDirectory, future: bool) -> Log | None:
        """Takes a log into service that was found on disk, unless another directory has the better one.

        Two directories hold the same partition when a move was cut short after the new log took over and before the
        old one went. The new one has all that the old one has, and what came since: the longer history wins.
        """
        known = self.futures if future else self.logs
        other = known.get(key)
        if other is not None:
            wins = (log.epochs.latest, log.next) > (other.epochs.latest, other.next)
            loser = other if wins else log
            loser.close(clean=False)
            self._set_aside(loser.directory, loser.name)
            if not wins:
                return None
            self._disown(other)
        self._adopt(key, log, directory, known)
        return log

    def close(self, broker_epoch: int) -> None:
        """Closes every log cleanly, writes the checkpoints and leaves the marker that spares the next start a scan."""
        for directory in self.directories:
            if not directory.online:
                directory.unlock()
                continue
            try:
                logs = self._logs_in(directory)
                # Each log that moved needs several syncs; for many of them one sync of the whole volume is cheaper.
                many = len(logs) >= ONE_SYNC_FROM
                with self.files.one_sync(directory.path) if many else nullcontext():
                    for log in logs:
                        log.close()
                    for write in self._checkpoints_of(directory):
                        write.sync()
                directory.close(broker_epoch)
            except (OSError, StorageFailed, Refused) as error:
                self.fail(directory, str(error))

    # -- finding

    def get(self, key: PartitionKey) -> Log | None:
        """The log of a partition; None when there is none here, KAFKA_STORAGE_ERROR when its directory is offline."""
        log = self.logs.get(key)
        if log is None and key in self._lost:
            raise Refused(KAFKA_STORAGE_ERROR, self._lost[key])
        return log

    def directory_of(self, log: Log) -> LogDirectory:
        return self._homes[log]

    def directory_at(self, path: str) -> LogDirectory:
        """LOG_DIR_NOT_FOUND when no directory is called so."""
        for directory in self.directories:
            if directory.path == path.rstrip("/"):
                return directory
        raise Refused(LOG_DIR_NOT_FOUND, f"{path} is not one of the log directories")

    def directory_with(self, directory_id: Uuid) -> LogDirectory | None:
        return next((directory for directory in self.directories if directory.id == directory_id), None)

    def describe(self) -> list[DirectoryReport]:
        """What DescribeLogDirs tells."""
        return [
            report_of(directory, self._named_in(directory), set(self.futures.values()), self.logs)
            for directory in self.directories
        ]

    # -- making and removing

    def create(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        settings: LogSettings,
        directory_id: Uuid | None = None,
        *,
        now: Millis,
        future: bool = False,
    ) -> Log:
        """A new, empty log in the given directory, or in the one that has the fewest."""
        directory = self._place(directory_id)
        key = PartitionKey(topic_id, name.partition)
        known = self.futures if future else self.logs
        assert key not in known, "a partition has one log here"
        unique = self._new_uuid().hex() if future else ""
        path = f"{directory.path}/{partition_directory(name, Kind.FUTURE if future else Kind.LIVE, unique)}"
        if self.files.exists(path):
            raise Refused(INCONSISTENT_TOPIC_ID, f"{path} still holds another topic of this name")
        try:
            log = Log.create(
                self.files, path, name, topic_id, settings, now=now, producer_expiration_ms=self._producer_expiration_ms
            )
        except StorageFailed as failure:
            self.fail(directory, str(failure))
            raise
        self._adopt(key, log, directory, known)
        return log

    def remove(self, key: PartitionKey, *, now: Millis, future: bool = False) -> None:
        """Takes a log out of service. Its directory gets a name of its own and is purged after file.delete.delay.ms."""
        log = (self.futures if future else self.logs).pop(key, None)
        self._lost.pop(key, None)
        if log is None:
            return
        if not future:
            self._homes[log].forget(log.name)
        self._discard(log, now)

    def _discard(self, log: Log, now: Millis) -> None:
        directory = self._disown(log)
        log.close(clean=False)
        path = f"{directory.path}/{partition_directory(log.name, Kind.DELETE, self._new_uuid().hex())}"
        try:
            self.files.rename(log.directory, path)
        except OSError as error:
            self.fail(directory, str(error))
            return
        heappush(self._doomed, (now + log.settings.file_delete_delay_ms, path, directory))

    def set_aside(self, key: PartitionKey) -> None:
        """Takes a log out of service that metadata does not know; its directory stays, marked as stray."""
        log = self.logs.pop(key)
        directory = self._disown(log)
        log.close(clean=False)
        try:
            self._set_aside(log.directory, log.name)
        except OSError as error:
            self.fail(directory, str(error))

    def promote(self, key: PartitionKey, *, now: Millis) -> Log:
        """The future log takes over: it gets the partition's name, then the old log is removed."""
        log, old = self.succeed(key)
        if old is not None:
            self.retire(old, now=now)
        return log

    def succeed(self, key: PartitionKey) -> tuple[Log, Log | None]:
        """The future log gets the partition's name and serves from now on: (it, the old log).

        The old one keeps its directory until `retire`, so that a power cut before the new one is synced loses nothing.
        """
        future = self.futures.pop(key)
        directory = self._homes[future]
        old = self.logs.get(key)
        assert old is None or self._homes[old] is not directory, "a future log lives in another directory"
        path = f"{directory.path}/{partition_directory(future.name)}"
        try:
            self.files.rename(future.directory, path)
        except OSError as error:
            self.fail(directory, str(error))
            raise StorageFailed(future.directory, str(error)) from error
        future.move(path)
        self.logs[key] = future
        if old is not None:
            first_dirty = self._homes[old].cleaner_offsets.get(old.name)
            self._homes[old].forget(old.name)
            if first_dirty is not None:
                directory.cleaner_offsets[old.name] = first_dirty
        return future, old

    def retire(self, log: Log, *, now: Millis) -> None:
        """Removes a log that another one has succeeded."""
        if log in self._homes:  # else its directory failed meanwhile
            self._discard(log, now)

    def purgeable(self, now: Millis) -> list[str]:
        """Directories of removed logs whose delay is over, handed out once: remove them off the loop."""
        due: list[str] = []
        while self._doomed and self._doomed[0][0] <= now:
            _at, path, directory = heappop(self._doomed)
            if directory.online:
                due.append(path)
        return due

    def purge(self, now: Millis) -> None:
        """`purgeable`, removed here and now."""
        for path in self.purgeable(now):
            try:
                self.files.rmtree(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.fail(self.directory_at(path.rpartition("/")[0]), str(error))

    # -- failing

    def fail(self, directory: LogDirectory | str, why: str) -> list[PartitionKey]:
        """Takes a directory offline with everything in it; returns the partitions that are lost with it."""
        if isinstance(directory, str):
            directory = self.directory_at(directory)
        lost = [key for key, log in self.logs.items() if self._homes[log] is directory]
        for key in lost:
            self._lost[key] = f"{self.logs[key].name} is in {directory.path}, which is offline: {why}"
        for log in self._logs_in(directory):
            for known in (self.logs, self.futures):
                key = PartitionKey(log.topic_id, log.name.partition)
                if known.get(key) is log:
                    del known[key]
            log.fail(OSError(0, why, directory.path))
            log.close(clean=False)
            self._disown(log)
        was_online = directory.online
        directory.fail(why)
        if was_online:
            self.on_failed(directory, lost)
        return lost

    # -- checkpoints

    def high_watermarks_to_write(self) -> list[Syncable]:
        """Kafka writes these every 5 seconds. Each `sync` may fail: then `fail` its directory."""
        return [
            directory.checkpoint(HIGH_WATERMARKS, {log.name: log.committed for log in self._live_in(directory)})
            for directory in self.directories
            if directory.online
        ]

    def recovery_points_to_write(self) -> list[Syncable]:
        """Kafka writes these every 60 seconds."""
        return [
            directory.checkpoint(
                RECOVERY_POINTS, {log.name: log.recovery_checkpoint for log in self._named_in(directory)}
            )
            for directory in self.directories
            if directory.online
        ]

    def log_starts_to_write(self) -> list[Syncable]:
        """The starts that no segment's name tells. Kafka writes these every 60 seconds too, apart from the others."""
        return [
            directory.checkpoint(
                LOG_STARTS,
                {log.name: log.log_start for log in self._live_in(directory) if log.log_start > log.segments[0].base},
            )
            for directory in self.directories
            if directory.online
        ]

    def set_cleaner_offset(self, key: PartitionKey, first_dirty: Offset) -> Syncable:
        """Compaction has come to `first_dirty`. The write is the caller's to do."""
        log = self.logs[key]
        directory = self._homes[log]
        directory.cleaner_offsets[log.name] = first_dirty
        return directory.checkpoint(CLEANER_OFFSETS, directory.cleaner_offsets)

    def cleaner_offset(self, key: PartitionKey) -> Offset | None:
        log = self.logs[key]
        return self._homes[log].cleaner_offsets.get(log.name)

    def write_checkpoints(self) -> None:
        """All of them here and now; a directory that fails goes offline."""
        for directory in self.directories:
            if directory.online:
                try:
                    for write in self._checkpoints_of(directory):
                        write.sync()
                except OSError as error:
                    self.fail(directory, str(error))

    def _checkpoints_of(self, directory: LogDirectory) -> list[Syncable]:
        logs = self._live_in(directory)
        starts = {log.name: log.log_start for log in logs if log.log_start > log.segments[0].base}
        return [
            directory.checkpoint(RECOVERY_POINTS, {log.name: log.recovery_point for log in self._named_in(directory)}),
            directory.checkpoint(LOG_STARTS, starts),
            directory.checkpoint(HIGH_WATERMARKS, {log.name: log.committed for log in logs}),
        ]

    # -- within

    def _place(self, directory_id: Uuid | None) -> LogDirectory:
        if directory_id is not None:
            directory = self.directory_with(directory_id)
            if directory is None:
                raise Refused(LOG_DIR_NOT_FOUND, f"no log directory has the id {directory_id.hex()}")
            if not directory.online:
                raise Refused(KAFKA_STORAGE_ERROR, f"{directory.path} is offline: {directory.why_offline}")
            return directory
        online = [directory for directory in self.directories if directory.online]
        if not online:
            raise Refused(KAFKA_STORAGE_ERROR, "every log directory is offline")
        # A cordoned directory takes new replicas only when there is no other.
        open_ones = [directory for directory in online if not directory.cordoned] or online[:1]
        return min(open_ones, key=lambda directory: directory.log_count)

    def _adopt(self, key: PartitionKey, log: Log, directory: LogDirectory, known: dict[PartitionKey, Log]) -> None:
        known[key] = log
        self._homes[log] = directory
        directory.log_count += 1
        self._lost.pop(key, None)

    def _disown(self, log: Log) -> LogDirectory:
        directory = self._homes.pop(log)
        directory.log_count -= 1
        return directory

    def _set_aside(self, path: str, name: TopicPartition) -> None:
        parent = path.rpartition("/")[0]
        self.files.rename(path, f"{parent}/{partition_directory(name, Kind.STRAY, self._new_uuid().hex())}")

    def _logs_in(self, directory: LogDirectory) -> list[Log]:
        return [log for log, home in self._homes.items() if home is directory]

    def _named_in(self, directory: LogDirectory) -> list[Log]:
        """Current and future logs; no directory has both of one partition, so names tell them apart."""
        return self._live_in(directory) + [log for log in self.futures.values() if self._homes[log] is directory]

    def _live_in(self, directory: LogDirectory) -> list[Log]:
        return [log for log in self.logs.values() if self._homes[log] is directory]
