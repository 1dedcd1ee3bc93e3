"""All logs of a node, over several directories. A directory that fails goes offline alone; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

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
from penstock.storage.beliefs import beliefs_about, cleaned_to, note_outdated
from penstock.storage.checkpointing import OFFSET_TOLD, TELLS_OF_FUTURES, line_of
from penstock.storage.checkpoints import CLEANER_OFFSETS, OFFSET_CHECKPOINTS, RECOVERY_POINTS
from penstock.storage.clean_shutdown import UNKNOWN_BROKER_EPOCH
from penstock.storage.departures import Departures, Leaving
from penstock.storage.doomed import Doomed
from penstock.storage.log import DEFAULT_PRODUCER_EXPIRATION_MS, Log
from penstock.storage.log_directory import CheckpointWrite, LogDirectory
from penstock.storage.names import PARTITION_METADATA, Kind, parse_partition_directory, partition_directory
from penstock.storage.partition_metadata import read_partition_metadata
from penstock.storage.reports import DirectoryReport, report_of
from penstock.storage.settings import LogSettings
from penstock.storage.strays import Stray

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
        self.departures = Departures()
        # Directories that were set aside, by path: nobody serves them, and they stay until they are doomed.
        self.strays: dict[str, Stray] = {}
        self._doomed = Doomed[tuple[str, LogDirectory]]()
        # The broker epoch of the last clean stop; -1 when one of the directories was not closed cleanly.
        self.clean_broker_epoch = UNKNOWN_BROKER_EPOCH
        self._cluster: tuple[str, int] = ("", -1)

    # -- opening and closing

    def open(self, *, cluster_id: str, node_id: int, now: Millis) -> None:
        """Opens every directory and every log in it. Raises StorageFailed only when no directory works."""
        for _ in self.opening(cluster_id=cluster_id, node_id=node_id, now=now):
            pass
        self.settle()

    def opening(self, *, cluster_id: str, node_id: int, now: Millis) -> Iterator[Log]:
        """`open`, one log at a time, for a caller that has other things to do in between.

        The caller has to `settle` as well, or to do what that does, before anything is made or removed.
        """
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
            self.settle()
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
            path = f"{directory.path}/{entry}"
            if parsed is None or not self.files.isdir(path):
                continue
            name, kind = parsed
            if kind is Kind.DELETE:
                self._doomed.add((path, directory), 0)  # whoever was reading it went with the last process
                continue
            if kind is Kind.STRAY:
                self.strays[path] = Stray(name, path, directory)
                continue
            try:
                log = self._open_log(directory, entry, name, kind, now)
            except (StorageFailed, OSError) as error:
                self.fail(directory, str(error))
                return
            if log is not None:
                yield log
        note_outdated(directory, self._live_in(directory), self._futures_in(directory))

    def _open_log(
        self, directory: LogDirectory, entry: str, name: TopicPartition, kind: Kind, now: Millis
    ) -> Log | None:
        path = f"{directory.path}/{entry}"
        metadata = f"{path}/{PARTITION_METADATA}"
        try:
            topic_id = read_partition_metadata(self.files, metadata)
        except Corrupt:
            topic_id = None
        if topic_id is None:
            # Nobody can say whose data this is: kept, but not served.
            self.departures.add(Leaving(name, path, directory, Kind.STRAY, now, None))
            return None
        future = kind is Kind.FUTURE
        settings = self.settings_for(name)
        beliefs = beliefs_about(directory, name, kind, self.files.mtime_ms(metadata))
        # Any entry may stand for gaps that a cleaning left, whatever its offset is worth.
        compacted = settings.compacts or name in directory.said[CLEANER_OFFSETS].offsets
        log = Log.open(
            self.files,
            path,
            name,
            topic_id,
            settings,
            now=now,
            clean=directory.clean,
            recovery_point=beliefs.recovery_point,
            log_start=beliefs.log_start,
            high_watermark=beliefs.high_watermark,
            gapless=not compacted and not future,
            producer_expiration_ms=self._producer_expiration_ms,
        )
        log.cleaned_to = cleaned_to(beliefs.cleaned_to, log)
        return self._take_in(PartitionKey(topic_id, name.partition), log, directory, future, now)

    def _take_in(self, key: PartitionKey, log: Log, directory: LogDirectory, future: bool, now: Millis) -> Log | None:
        """Takes a log into service that was found on disk, unless another directory has the better one.

        Two directories hold the same partition when a move was cut short after the new log took over and before the
        old one went. The new one has all that the old one has, and what came since: the longer history wins. What
        checkpoints say of either holds for both, and may not be in those of the new directory yet.
        """
        known = self.futures if future else self.logs
        other = known.get(key)
        self._homes[log] = directory
        directory.log_count += 1
        if other is None:
            known[key] = log
            return log
        winner, loser = (
            (log, other) if (log.epochs.latest, log.next) > (other.epochs.latest, other.next) else (other, log)
        )
        known[key] = winner
        if not future:
            winner.commit_to(Offset(min(loser.committed, winner.next)))
            winner.advance_start(Offset(min(loser.log_start, winner.committed)))
            winner.cleaned_to = loser.cleaned_to if winner.cleaned_to is None else winner.cleaned_to
            self._homes[winner].outdated.update(OFFSET_CHECKPOINTS)
        self._let_go(loser, Kind.STRAY, now)
        return log if winner is log else None

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
                    for write in self._last_checkpoints_of(directory):
                        write.sync()
                self._depart_from(directory)
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

    def home_of(self, key: PartitionKey) -> Uuid | None:
        """The id of the directory that holds a partition's log; None while it has none."""
        log = self.logs.get(key)
        return None if log is None else self._homes[log].id

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
        assert future or not directory.speaks_of(name), "what checkpoints say of a name left with its last owner"
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
        """`let_go`, and gone when this returns. For tools and tests; a broker lets logs depart off the loop."""
        self.let_go(key, now=now, future=future)
        self.settle()

    def let_go(self, key: PartitionKey, *, now: Millis, future: bool = False) -> None:
        """Takes a log out of service. It is one of `departures` until no checkpoint speaks of it.

        Then its directory gets a name of its own, and is purged after file.delete.delay.ms.
        """
        log = (self.futures if future else self.logs).pop(key, None)
        self._lost.pop(key, None)
        if log is not None:
            self._let_go(log, Kind.DELETE, now)

    def set_aside(self, key: PartitionKey, *, now: Millis) -> None:
        """Takes a log out of service that metadata does not know; its directory stays, marked as stray in the end."""
        self._let_go(self.logs.pop(key), Kind.STRAY, now)

    def _let_go(self, log: Log, kind: Kind, now: Millis) -> None:
        directory = self._homes.pop(log)
        directory.log_count -= 1
        log.close(clean=False)
        self.departures.add(Leaving(log.name, log.directory, directory, kind, now, log))

    def depart(self, leaving: Leaving) -> None:
        """Renames a directory of which no checkpoint speaks any more."""
        if not self.departures.pop(leaving):
            return  # the disk failed meanwhile
        name, path, directory, kind, since, log = leaving
        target = f"{directory.path}/{partition_directory(name, kind, self._new_uuid().hex())}"
        try:
            self.files.rename(path, target)
        except OSError as error:
            self.fail(directory, str(error))
            return
        if kind is Kind.DELETE:
            assert log is not None, "what nobody can open is a stray"
            self._doomed.add((target, directory), log.settings.file_delete_delay_ms)
        else:
            self.strays[target] = Stray(name, target, directory, since)

    def doom(self, stray: Stray) -> None:
        """A directory that was set aside becomes one that is deleted: by its name, so that a crash changes nothing."""
        target = f"{stray.directory.path}/{partition_directory(stray.name, Kind.DELETE, self._new_uuid().hex())}"
        del self.strays[stray.path]
        try:
            self.files.rename(stray.path, target)
        except FileNotFoundError:
            return  # somebody took it away
        except OSError as error:
            self.fail(stray.directory, str(error))
            return
        self._doomed.add((target, stray.directory), 0)

    def settle(self) -> None:
        """Lets everything depart here and now. For tools, tests and the end; it syncs on the caller's thread."""
        for directory in self.directories:
            if directory.online:
                try:
                    for checkpoint in self.departures.outdated(directory):
                        self.checkpoint(directory, checkpoint).sync()
                except OSError as error:
                    self.fail(directory, str(error))
                self._depart_from(directory)

    def _depart_from(self, directory: LogDirectory) -> None:
        for leaving in self.departures:
            if leaving.directory is directory:
                self.depart(leaving)

    def promote(self, key: PartitionKey, *, now: Millis) -> Log:
        """The future log takes over: it gets the partition's name, then the old log leaves."""
        log, old = self.succeed(key)
        if old is not None:
            log.cleaned_to = old.cleaned_to
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
        return future, old

    def retire(self, log: Log, *, now: Millis) -> None:
        """Lets a log go that another one has succeeded."""
        if log in self._homes:  # else its directory failed meanwhile
            self._let_go(log, Kind.DELETE, now)

    def purgeable(self, monotonic_ms: float) -> list[str]:
        """Directories of removed logs whose delay is over, handed out once: remove them off the loop."""
        return [path for path, directory in self._doomed.take_due(monotonic_ms) if directory.online]

    def purge(self, monotonic_ms: float) -> None:
        """`purgeable`, removed here and now."""
        for path in self.purgeable(monotonic_ms):
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
            del self._homes[log]
            directory.log_count -= 1
        for leaving in self.departures:
            if leaving.directory is directory:
                self.departures.pop(leaving)  # it keeps its name, and is a stray when the directory comes back
        for stray in list(self.strays.values()):
            if stray.directory is directory:
                del self.strays[stray.path]
        was_online = directory.online
        directory.fail(why)
        if was_online:
            self.on_failed(directory, lost)
        return lost

    def directory_failed(self, failure: StorageFailed) -> None:
        """A directory that fails goes offline alone: its partitions refuse, the others go on."""
        path = failure.path
        for directory in self.directories:
            if path == directory.path or path.startswith(f"{directory.path}/"):
                if directory.online:
                    told = path == directory.path or path in failure.why
                    self.fail(directory, failure.why if told else str(failure))
                return

    # -- checkpoints

    def checkpoint(self, directory: LogDirectory, checkpoint: str) -> CheckpointWrite:
        """The write of what one offset checkpoint of a directory should say now, to be done wherever the caller likes.

        One at a time: a late one must not undo what an earlier one was made for.
        """
        offset_told = OFFSET_TOLD[checkpoint]
        logs = self._named_in(directory) if checkpoint in TELLS_OF_FUTURES else self._live_in(directory)
        told = ((log, offset_told(log)) for log in logs)
        return CheckpointWrite(
            directory, checkpoint, ((log.name, line_of(log, offset)) for log, offset in told if offset is not None)
        )

    def write_checkpoints(self) -> None:
        """All of them here and now; a directory that fails goes offline."""
        for directory in self.directories:
            if directory.online:
                try:
                    for write in self._last_checkpoints_of(directory):
                        write.sync()
                except OSError as error:
                    self.fail(directory, str(error))

    def _last_checkpoints_of(self, directory: LogDirectory) -> list[CheckpointWrite]:
        """With recovery points that count when indexes are synced too, as they are at the end."""
        flushed = ((log.name, line_of(log, log.recovery_point)) for log in self._named_in(directory))
        others = [name for name in OFFSET_CHECKPOINTS if name != RECOVERY_POINTS]
        return [
            CheckpointWrite(directory, RECOVERY_POINTS, flushed),
            *(self.checkpoint(directory, name) for name in others),
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

    def _logs_in(self, directory: LogDirectory) -> list[Log]:
        return [log for log, home in self._homes.items() if home is directory]

    def _named_in(self, directory: LogDirectory) -> list[Log]:
        """Current and future logs; no directory has both of one partition, so names tell them apart."""
        return self._live_in(directory) + self._futures_in(directory)

    def _live_in(self, directory: LogDirectory) -> list[Log]:
        return [log for log in self.logs.values() if self._homes[log] is directory]

    def _futures_in(self, directory: LogDirectory) -> list[Log]:
        return [log for log in self.futures.values() if self._homes[log] is directory]
