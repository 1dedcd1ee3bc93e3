"""The exactly-once topic sink, struck at a chosen point of a chosen batch.

    before-write     a task has its rows and no transaction    after-write     its transaction is open, nobody knows
    before-decision  all tasks have written                    after-decision  it is decided, nothing is ended
    among-ends       one transaction is committed, others not  before-ended    all are, and the ledger does not know
    before-log       the sink is done, Spark's own log does not know

`worker` kills the Python process of a task, `driver` everything, `stop` stops everything with SIGSTOP.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.client.producer.transactions.prepared import PreparedTransaction
from penstock.spark.source.data_source import TopicDataSource
from penstock.spark.topic_sink.transactions.driving import Driving
from penstock.spark.topic_sink.transactions.effects import Effect, End, Write
from tests.faults.spark.strikes import Struck, kill_session

BLOWN_FORMAT = "blown-topic"
IN_TASKS = ("before-write", "after-write")
IN_COMMITS = ("before-decision", "after-decision", "among-ends", "before-ended", "before-log")
WORKER, DRIVER, STOP, CALL = "worker", "driver", "stop", "call"
_OPTION = "blow"


@dataclass(frozen=True)
class Blow:
    """It falls once: `mark` is the file that says that it has fallen."""

    point: str
    batch: int
    victim: str
    mark: Path

    def options(self) -> dict[str, str]:
        return {_OPTION: f"{self.point} {self.batch} {self.victim} {self.mark}"}

    @classmethod
    def of(cls, text: str) -> Blow:
        point, batch, victim, mark = text.split(" ", 3)
        return cls(point, int(batch), victim, Path(mark))

    def at(self, point: str, batch: int) -> None:
        if (point, batch) != (self.point, self.batch):
            return
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        match self.victim:
            case "worker":
                os.kill(os.getpid(), signal.SIGKILL)
            case "driver":
                kill_session()
            case "stop":
                stop_session()
            case _:
                raise Struck(f"struck {point} of batch {batch}")


def stop_session() -> None:
    """SIGSTOP of the driver's Python and JVM and of all that they started; this process is the last."""
    mine = os.getpid()
    # Whoever is stopped last may have started somebody just before.
    while awake := [each for each in session_of(os.getsid(0)) if each.pid != mine and not sleeps(each)]:
        for process in awake:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGSTOP)
    os.kill(mine, signal.SIGSTOP)


def sleeps(process: psutil.Process) -> bool:
    """Whether it was stopped; who has ended does nothing either, and whoever would see to it may be asleep."""
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def session_of(leader: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


class BlownWriter(DataSourceStreamArrowWriter):
    """Calls the real writer, and the blow at its points."""

    def __init__(self, inner: DataSourceStreamArrowWriter, blow: Blow) -> None:
        self._inner, self._blow = inner, blow

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "a task runs this"
        batch = int(context.getLocalProperty("streaming.sql.batchId") or -1)
        self._blow.at("before-write", batch)
        message = self._inner.write(iterator)
        self._blow.at("after-write", batch)
        return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        true_obey, true_end = Driving._obey, Driving._end
        blow = self._blow

        async def obey(driving: Driving, effect: Effect) -> Any:
            match effect:
                case Write(standing) if standing.decision is not None:
                    blow.at("before-ended" if standing.decision.ended else "before-decision", batchId)
                case End(_, True):
                    blow.at("after-decision", batchId)
            return await true_obey(driving, effect)

        async def end(driving: Driving, prepared: PreparedTransaction, commit: bool) -> bool:
            ended = await true_end(driving, prepared, commit)
            blow.at("among-ends", batchId)
            return ended

        Driving._obey, Driving._end = obey, end  # type: ignore[method-assign]
        try:
            self._inner.commit(list(messages), batchId)
        finally:
            Driving._obey, Driving._end = true_obey, true_end  # type: ignore[method-assign]
        blow.at("before-log", batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._inner.abort(list(messages), batchId)


class BlownTopic(TopicDataSource):
    """format("blown-topic"): topics, with the option of a blow."""

    def __init__(self, options: dict[str, str]) -> None:
        blow = next((word for name, word in options.items() if name.lower() == _OPTION), None)
        self._blow = None if blow is None else Blow.of(blow)
        super().__init__({name: word for name, word in options.items() if name.lower() != _OPTION})

    @classmethod
    def name(cls) -> str:
        return BLOWN_FORMAT

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        inner = super().streamWriter(schema, overwrite)
        assert isinstance(inner, DataSourceStreamArrowWriter)
        return inner if self._blow is None else BlownWriter(inner, self._blow)
