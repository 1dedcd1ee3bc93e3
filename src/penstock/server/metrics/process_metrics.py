"""What the system tells of this process at scrape: processor, memory, threads, files, disk, and the garbage collector.

Names are those of Prometheus' own process metrics. Dashboards of Kafka ask for the same of a Java machine: what this
process has as well (memory, threads, a collector) is told by those names too, of this process.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Iterator
from typing import Final

from penstock.server.metrics.page import Sample
from penstock.server.metrics.recent_rate import RecentRate
from penstock.transport.prometheus import COUNTER, GAUGE, SUMMARY

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/self/stat behind the name, which may hold anything: utime is the 14th of all, the 12th of these.
_UTIME, _STIME, _THREADS, _STARTED, _VIRTUAL, _RESIDENT = 11, 12, 17, 19, 20, 21


class ProcessWatch:
    """Made and started in the thread of the node's loop, whose time on the processor it measures."""

    __slots__ = ("_began_s", "_busy", "_collecting_s", "_collections", "_now_s", "_worked_s")

    def __init__(
        self, now_s: Callable[[], float] = time.monotonic, worked_s: Callable[[], float] = time.thread_time
    ) -> None:
        """`worked_s` is the time that the thread has had on a processor."""
        self._now_s, self._worked_s = now_s, worked_s
        self._busy = RecentRate(now_s(), worked_s())
        self._collections = 0
        self._collecting_s = self._began_s = 0.0

    def start(self) -> None:
        gc.callbacks.append(self._collected)

    def stop(self) -> None:
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, _about: dict[str, int]) -> None:
        now_s = time.perf_counter()
        if phase == "start":
            self._began_s = now_s
        else:
            self._collections += 1
            self._collecting_s += now_s - self._began_s

    def samples(self) -> Iterator[Sample]:
        yield from self._loop_samples()
        yield from _process_samples()
        yield from _disk_samples()
        name, words = "jvm_gc_collection_seconds", "Time in the garbage collector, of Python's"
        labels = {"gc": "python"}
        yield Sample(name + "_sum", labels, round(self._collecting_s, 6), SUMMARY, words)
        yield Sample(name + "_count", labels, self._collections, SUMMARY, words)

    def _loop_samples(self) -> Iterator[Sample]:
        """One thread does what Kafka's network and request threads do, so both are idle when it is."""
        busy = self._busy.per_second(self._now_s(), self._worked_s())
        idle = round(min(1.0, max(0.0, 1.0 - busy)), 4)
        words = "Share of the last minute in which the event loop did nothing"
        yield Sample("kafka_network_socketserver_networkprocessoravgidle_percent", {}, idle, GAUGE, words)
        yield Sample("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", {}, idle, GAUGE, words)


def _process_samples() -> Iterator[Sample]:
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    cpu_s = (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_A_SECOND
    resident_bytes, threads = int(fields[_RESIDENT]) * _PAGE_BYTES, int(fields[_THREADS])
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    started_s = round(booted_s + int(fields[_STARTED]) / _TICKS_A_SECOND, 2)
    yield Sample("process_cpu_seconds_total", {}, cpu_s, COUNTER, "Time on processors")
    yield Sample("process_resident_memory_bytes", {}, resident_bytes, GAUGE, "Memory in use")
    yield Sample("process_virtual_memory_bytes", {}, int(fields[_VIRTUAL]), GAUGE, "Memory reserved")
    yield Sample("process_start_time_seconds", {}, started_s, GAUGE, "When the process began, since 1970")
    yield Sample("process_open_fds", {}, _open_files(), GAUGE, "Open files and sockets")
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield Sample("process_max_fds", {}, files_max, GAUGE, "How many may be open")
    yield Sample("jvm_memory_used_bytes", {"area": "resident"}, resident_bytes, GAUGE, "Memory in use; there is no JVM")
    yield Sample("jvm_threads_current", {}, threads, GAUGE, "Threads of this process; there is no JVM")


def _open_files() -> int:
    """The system tells the number since Linux 6.2; before, the directory has to be read."""
    told = os.stat("/proc/self/fd").st_size
    return told or len(os.listdir("/proc/self/fd"))


def _disk_samples() -> Iterator[Sample]:
    """Nothing where the system does not tell: it may be built without these counts, or keep them from us."""
    try:
        with open("/proc/self/io") as file:
            counts = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return
    prefix = "kafka_server_kafkaserver_linux_disk_"
    yield Sample(prefix + "read_bytes", {}, int(counts["read_bytes"]), COUNTER, "Bytes that came from disks")
    yield Sample(prefix + "write_bytes", {}, int(counts["write_bytes"]), COUNTER, "Bytes that went to disks")
