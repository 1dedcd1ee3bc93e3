"""One run, watched: how many records have arrived, and what the processes have used, over time."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat import wire

LIST_OFFSETS, LIST_OFFSETS_VERSION, LATEST = 2, 2, -1
TICKS_PER_S, PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class Ends:
    """Asks a broker where the partitions of a topic end, over one connection."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, committed: bool = False) -> None:
        """`committed`: where those read who want committed records only; markers of transactions count with them."""
        wanted = b"".join(struct.pack(">iq", partition, LATEST) for partition in range(partitions))
        body = struct.pack(">ibi", -1, committed, 1) + wire.text(topic) + struct.pack(">i", partitions) + wanted
        self._request = wire.request(LIST_OFFSETS, LIST_OFFSETS_VERSION, body)
        self._connection = wire.connect(bootstrap)

    def records(self) -> int:
        """Records in all partitions that consumers could read."""
        reply = self._connection.call(self._request)
        total = 0
        reply.one("i")  # how long the broker held back
        for _ in range(reply.one("i")):
            reply.text()
            for _ in range(reply.one("i")):
                _partition, error, _timestamp, offset = reply.take("ihqq")
                if error:
                    raise AssertionError(f"the end of a partition was refused with error {error}")
                total += offset
        return total

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True)
class Used:
    """What a process and its children have used so far."""

    cpu_s: float
    rss_bytes: int

    @staticmethod
    def by(pid: int) -> Used:
        cpu_s, rss_bytes = 0.0, 0
        for each in _family(pid):
            try:
                stat = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            # What children that ended have used is in their parent's account.
            cpu_s += sum(map(int, stat[11:15])) / TICKS_PER_S
            rss_bytes += int(stat[21]) * PAGE_BYTES
        return Used(cpu_s, rss_bytes)


def _family(pid: int) -> list[int]:
    """A process and those that it started. Looked up by the process: a walk through all of them costs milliseconds."""
    found = [pid]
    for each in found:
        try:
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


@dataclass(frozen=True)
class Sample:
    at_s: float
    records: int
    used: Mapping[str, Used]
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Course:
    """From the first record that was seen to the last."""

    samples: list[Sample]

    @property
    def seconds(self) -> float:
        return self.samples[-1].at_s - self.samples[0].at_s

    @property
    def records(self) -> int:
        return self.samples[-1].records - self.samples[0].records

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds

    def cpu_s(self, name: str) -> float:
        return self.samples[-1].used[name].cpu_s - self.samples[0].used[name].cpu_s

    def rss_max_bytes(self, name: str) -> int:
        return max(sample.used[name].rss_bytes for sample in self.samples)

    def rss_late_over_early(self, name: str) -> float:
        """The highest of the last third over the highest of the second: 1 is flat."""
        third = max(len(self.samples) // 3, 1)
        middle, last = self.samples[third : 2 * third] or self.samples, self.samples[2 * third :]
        return max(each.used[name].rss_bytes for each in last) / max(each.used[name].rss_bytes for each in middle)


class Watch:
    """Looks at a topic and at processes, again and again."""

    def __init__(
        self, ends: Ends, pids: Mapping[str, int], more: Callable[[], Mapping[str, float]] | None = None
    ) -> None:
        self._ends, self._pids, self._more = ends, pids, more
        self._began = time.perf_counter()
        self.samples: list[Sample] = []

    def look(self) -> Sample:
        more = self._more() if self._more else {}
        records = self._ends.records()
        used = {name: Used.by(pid) for name, pid in self._pids.items()}
        sample = Sample(time.perf_counter() - self._began, records, used, more)
        self.samples.append(sample)
        return sample

    def until(self, enough: Callable[[Sample], bool], *, timeout_s: float, every_s: float = 0.05) -> Course:
        """The course from the first record on; AssertionError when it does not come to its end."""
        deadline = time.perf_counter() + timeout_s
        first = 0
        while not enough(self.look()):
            if not self.samples[-1].records:
                first = len(self.samples)
            if time.perf_counter() > deadline:
                raise AssertionError(f"after {timeout_s:.0f} s there are {self.samples[-1].records:,} records")
            time.sleep(every_s)
        # What came all between two looks began after the one before.
        return Course(self.samples[max(min(first, len(self.samples) - 2), 0) :])


def lines_of(path: Path, line_bytes: int) -> int:
    """How many lines of one length a file has so far."""
    return path.stat().st_size // line_bytes if path.exists() else 0


def ages_ms(samples: list[Sample], written: str) -> list[float]:
    """At each sample: how old was the oldest line that was written and had not arrived? 0 when all had."""
    found: list[float] = []
    at = 0
    for index, sample in enumerate(samples):
        while at < index and samples[at].more[written] <= sample.records:
            at += 1
        waiting = samples[at].more[written] > sample.records
        # It was written after the look before.
        found.append((sample.at_s - samples[max(at - 1, 0)].at_s) * 1000 if waiting else 0.0)
    return found
