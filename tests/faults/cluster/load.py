"""A workload: several writers and readers of one topic, their history, and the judgement in the end."""

from __future__ import annotations

import gc
import logging
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.compat.cluster import Cluster
from tests.compat.processes import wait_for
from tests.faults.cluster import readers, writers
from tests.faults.cluster.history import History, Read, report
from tests.faults.cluster.logins import OPEN, Login
from tests.faults.cluster.readers import Reader
from tests.faults.cluster.writers import OneShot, Writer
from tests.faults.node import read_all

log = logging.getLogger(__name__)

PROGRESS_S = 60.0
CATCH_UP_S = 60.0


class Load:
    """Runs from `with` until `finish`. A load that failed leaves its history beside the nodes."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partitions: int,
        *,
        writing: Sequence[type[Writer]] = writers.EVERY,
        reading: Sequence[type[Reader]] = readers.EVERY,
        rate_per_s: float = 40.0,
        login: Login = OPEN,
    ) -> None:
        self.login = login
        self.cluster, self.topic, self.partitions = cluster, topic, range(partitions)
        self.history = History(unordered=[OneShot.__name__.lower()])
        where = (cluster.bootstrap, topic, self.partitions, self.history)
        self.writers = [kind(*where, rate_per_s, login) for kind in writing]
        self.readers = [kind(*where, login) for kind in reading]

    def __enter__(self) -> Load:
        for library in ("kafka", "aiokafka", "penstock.client"):
            # They tell of every broken link, and links are broken here all the time.
            logging.getLogger(library).setLevel(logging.CRITICAL)
        for each in (*self.writers, *self.readers):
            each.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.history.save(self.cluster.home / "history.jsonl")
        # All are told first, so that nobody waits for the patience of somebody else.
        for each in (*self.writers, *self.readers):
            each._stopping.set()
        for each in (*self.writers, *self.readers):
            each.stop()
        with warnings.catch_warnings():
            # kafka-python leaves sockets behind whose connection failed.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    def wait_for_progress(self, count: int = 3, *, despite_silence: bool = False) -> float:
        """Returns when every writer got so many more acknowledgements in each partition; answers how long it took.

        With `despite_silence` only of those is it asked that give up a silent link before they give up its records.
        """
        began = time.monotonic()
        writing = [each for each in self.writers if each.hears_silence or not despite_silence]
        goals = {(writer, partition): acked + count for writer in writing for partition, acked in writer.acked.items()}

        def lagging() -> list[str]:
            return [
                f"{writer.name} in partition {partition} ({writer.unanswered} unanswered, {writer.failures[-1:]})"
                for (writer, partition), goal in goals.items()
                if writer.acked[partition] < goal
            ]

        arrived: dict[str, float] = {}

        def all_there() -> bool:
            behind = lagging()
            for writer, _partition in goals:
                if not any(words.startswith(f"{writer.name} ") for words in behind):
                    arrived.setdefault(writer.name, round(time.monotonic() - began, 1))
            return not behind

        try:
            wait_for("acknowledgements", all_there, timeout_s=PROGRESS_S)
            log.info("all go on: %s", arrived)
        except AssertionError:
            words = f"no {count} acknowledgements within {PROGRESS_S:.0f} s for {', '.join(lagging())}"
            raise AssertionError(f"{words}\n{self.cluster.trouble()}\n{self.cluster.last_words()}") from None
        return time.monotonic() - began

    def wait_for_readers(self, count: int = 3) -> None:
        """Returns when every reader, members of groups too, got so many more records of each partition."""
        goals = {
            (reader, partition): at + count for reader in self.readers for partition, at in reader.positions.items()
        }

        def lagging() -> list[str]:
            return [
                f"{reader.name} at {reader.positions[partition]} of partition {partition} {reader.failures[-1:]}"
                for (reader, partition), goal in goals.items()
                if reader.positions[partition] < goal
            ]

        try:
            wait_for("readers", lambda: not lagging(), timeout_s=PROGRESS_S)
        except AssertionError:
            words = f"no {count} more records within {PROGRESS_S:.0f} s for {', '.join(lagging())}"
            raise AssertionError(f"{words}\n{self.cluster.trouble()}\n{self.cluster.last_words()}") from None

    def finish(self) -> None:
        """Ends the writers, lets every reader catch up, reads everything once more, and judges it all."""
        self.end_writing()
        found = read_all(self.cluster.bootstrap, self.topic, self.partitions, **self.login.librdkafka)
        ends = dict.fromkeys(self.partitions, 0)
        for (partition, offset), value in found.items():
            self.history.reads.append(Read("final", 0, partition, offset, value.decode()))
            ends[partition] = max(ends[partition], offset + 1)
        for reader in self.readers:
            self._wait_until_read(reader, ends)
            reader.stop()
        self.judge()

    def end_writing(self) -> None:
        """Returns when the last record is answered or given up."""
        for writer in self.writers:
            writer._stopping.set()
        for writer in self.writers:
            writer.stop()

    def assert_nothing_given_up(self) -> None:
        """What was given up is no anomaly, but clients that try again for two minutes are not to give up."""
        given_up = [f"{each.name}: {words}" for each in self.writers for words in each.failures]
        assert not given_up, f"{len(given_up)} sends failed for good, such as {given_up[:5]}"

    def _wait_until_read(self, reader: Reader, ends: dict[int, int]) -> None:
        def caught_up() -> bool:
            assert not reader.failures, f"{reader.name}: {reader.failures}"
            return all(reader.positions[partition] >= end for partition, end in ends.items())

        try:
            wait_for(f"{reader.name} to catch up", caught_up, timeout_s=CATCH_UP_S)
        except AssertionError:
            raise AssertionError(f"{reader.name} stands at {reader.positions}, the logs end at {ends}") from None

    def judge(self) -> None:
        anomalies = self.history.check()
        if anomalies:
            path = self.cluster.home / "history.jsonl"
            self.history.save(path)
            raise AssertionError(f"{self.history.summary()}; kept in {path}\n{report(anomalies)}")
        self.assert_nothing_given_up()

    def keep(self, path: Path) -> None:
        self.history.save(path)
