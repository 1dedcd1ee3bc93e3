"""The lake sink, struck at a chosen point of a chosen batch: everything dies, one executor dies, or the call fails.

    before-write    a task has its rows and no file            after-write    its files are written and nobody knows
    before-commit   all files are there, the table has none    after-commit   the table has them, the ledger has not
    before-log      the sink is done, Spark's own log does not know
    mid-copy        of a checkpoint that is copied: its bytes are in the store, the manifest is not
    after-copy      the copy is there, nobody has noted it, and the table has nothing

Workers are Spark's to start, so what is to happen travels in options that are taken away before the sink sees them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.spark.checkpoints.manifest import Manifest
from penstock.spark.checkpoints.mirror import Mirror
from penstock.spark.lake import sink
from penstock.spark.lake.data_source import LakeDataSource
from penstock.spark.lake.store import Commit, TableStore
from tests.compat.processes import wait_for

STRUCK_FORMAT = "struck-lake"
POINTS = ("before-write", "after-write", "before-commit", "after-commit", "before-log")
COPY_POINTS = ("mid-copy", "after-copy")

DRIVER, EXECUTOR, CALL, STALL, SLEEPER = "driver", "executor", "call", "stall", "sleeper"
"""What goes down: the driver with everything it started, one executor, the call alone, or nothing but time. A sleeper
is a driver that is stopped with everything it started, until somebody wakes it."""

STALL_S = 120.0
_PREFIX = "strike."


class Struck(RuntimeError):
    """The call that was to fail."""


@dataclass(frozen=True)
class Strike:
    """One blow. It falls once: `mark` is the file that says that it has fallen."""

    point: str
    batch: int
    victim: str
    mark: Path

    def options(self) -> dict[str, str]:
        words = {"point": self.point, "batch": str(self.batch), "victim": self.victim, "mark": str(self.mark)}
        return {_PREFIX + name: word for name, word in words.items()}

    @classmethod
    def taken_from(cls, options: Mapping[str, str]) -> tuple[Strike | None, dict[str, str]]:
        """The blow, and the options that are the sink's."""
        ours = {name.lower().removeprefix(_PREFIX): word for name, word in options.items() if _ours(name)}
        rest = {name: word for name, word in options.items() if not _ours(name)}
        if not ours:
            return None, rest
        return cls(ours["point"], int(ours["batch"]), ours["victim"], Path(ours["mark"])), rest

    def at(self, point: str, batch: int) -> None:
        """Falls if this is the point and the batch, and nobody was before us."""
        if (point, batch) != (self.point, self.batch):
            return
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if self.victim == DRIVER:
            kill_session()
        elif self.victim == SLEEPER:
            stop_session()
        elif self.victim == EXECUTOR:
            kill_executor()
        elif self.victim == STALL:
            _stall(self.mark)
        else:
            raise Struck(f"struck {point} of batch {batch}")


def _stall(mark: Path) -> None:
    """Until Spark kills this attempt, because another one has done its task; a stall that ends is noted."""
    try:
        wait_for("the end of this attempt", lambda: False, timeout_s=STALL_S, pause_s=0.5)
    finally:
        stall_ended(mark).touch()


def stall_ended(mark: Path) -> Path:
    return mark.with_suffix(".ended")


def _ours(name: str) -> bool:
    return name.lower().startswith(_PREFIX)


def kill_session() -> None:
    """kill -9 of everything in this session of processes: the driver's Python and JVM, its workers, and us, last."""
    session, mine = os.getsid(0), os.getpid()
    # Held first, so that nobody sees another die and has time to do something about it.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in psutil.process_iter():
            try:
                if process.pid != mine and os.getsid(process.pid) == session:
                    os.kill(process.pid, number)
            except ProcessLookupError:
                continue
    os.kill(mine, signal.SIGKILL)


def stop_session() -> None:
    """SIGSTOP for everything in this session of processes, and for us, last."""
    session, mine = os.getsid(0), os.getpid()
    for process in psutil.process_iter():
        try:
            if process.pid != mine and os.getsid(process.pid) == session:
                os.kill(process.pid, signal.SIGSTOP)
        except ProcessLookupError:
            continue
    os.kill(mine, signal.SIGSTOP)


def wake_session(session: int) -> None:
    """SIGCONT for all that `stop_session` has stopped there."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session:
                os.kill(process.pid, signal.SIGCONT)
        except ProcessLookupError:
            continue


def end_session(session: int) -> None:
    """kill -9 for what is left of it."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session:
                process.kill()
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue


def kill_executor() -> None:
    """kill -9 of the executor that this worker belongs to, and of the worker."""
    for process in psutil.Process().parents():
        if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
            process.kill()
            os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("this task runs in no executor of its own")


class StruckWriter(DataSourceStreamArrowWriter):
    """Calls the real writer, and the blow at its points."""

    def __init__(self, inner: DataSourceStreamArrowWriter, strike: Strike) -> None:
        self._inner, self._strike = inner, strike

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "a task runs this"
        batch = int(context.getLocalProperty("streaming.sql.batchId") or -1)
        self._strike.at("before-write", batch)
        message = self._inner.write(iterator)
        self._strike.at("after-write", batch)
        return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        self._strike.at("before-commit", batchId)
        with (
            _before_the_ledger(lambda: self._strike.at("after-commit", batchId)),
            _around_the_copy(lambda point: self._strike.at(point, batchId)),
        ):
            self._inner.commit(list(messages), batchId)
        self._strike.at("before-log", batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._inner.abort(list(messages), batchId)


@contextmanager
def _before_the_ledger(blow: Callable[[], None]) -> Iterator[None]:
    """The ledger is written right after the table's own commit."""
    true_write_down = sink.write_down

    def write_down(store: TableStore, commit: Commit | None) -> None:
        blow()
        true_write_down(store, commit)

    sink.write_down = write_down
    try:
        yield
    finally:
        sink.write_down = true_write_down


@contextmanager
def _around_the_copy(blow: Callable[[str], None]) -> Iterator[None]:
    """A manifest is what makes a copy of a checkpoint."""
    true_put = Mirror._put

    def put(mirror: Mirror, manifest: Manifest) -> bool:
        blow("mid-copy")
        landed = true_put(mirror, manifest)
        blow("after-copy")
        return landed

    Mirror._put = put  # type: ignore[method-assign]
    try:
        yield
    finally:
        Mirror._put = true_put  # type: ignore[method-assign]


class StruckLake(LakeDataSource):
    """format("struck-lake"): the lake, with the options of a blow."""

    def __init__(self, options: dict[str, str]) -> None:
        self._strike, rest = Strike.taken_from(options)
        super().__init__(rest)

    @classmethod
    def name(cls) -> str:
        return STRUCK_FORMAT

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        inner = super().streamWriter(schema, overwrite)
        assert isinstance(inner, DataSourceStreamArrowWriter)
        return inner if self._strike is None else StruckWriter(inner, self._strike)
