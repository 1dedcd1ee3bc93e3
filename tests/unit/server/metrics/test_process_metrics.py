"""What the system tells of this process."""

from __future__ import annotations

import gc
import os
import threading

from penstock.server.metrics.page import Metrics
from penstock.server.metrics.process_metrics import ProcessWatch
from tests.walks.prometheus_text import samples


def told(watch: ProcessWatch) -> dict[str, float]:
    metrics = Metrics()
    metrics.register("process", watch.samples)
    return {sample.name: sample.value for sample in samples(metrics.page())}


def test_files_threads_and_memory_are_those_of_the_process() -> None:
    watch = ProcessWatch()
    before = told(watch)
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    stay = threading.Event()
    thread = threading.Thread(target=stay.wait)
    thread.start()
    try:
        after = told(watch)
    finally:
        stay.set()
        thread.join()
        for file in files:
            os.close(file)
    assert after["process_open_fds"] == before["process_open_fds"] + 20
    assert after["jvm_threads_current"] == before["jvm_threads_current"] + 1
    assert after["process_resident_memory_bytes"] == after["jvm_memory_used_bytes"] > 1 << 20
    assert 0 < after["process_start_time_seconds"] < os.stat("/proc/self/fd").st_ctime + 1
    assert after["process_cpu_seconds_total"] > 0


def test_collections_are_counted_from_start_to_stop() -> None:
    watch = ProcessWatch()
    gc.collect()
    assert told(watch)["jvm_gc_collection_seconds_count"] == 0
    watch.start()
    gc.collect()
    watch.stop()
    counted = told(watch)
    gc.collect()
    assert counted["jvm_gc_collection_seconds_count"] >= 1
    assert counted["jvm_gc_collection_seconds_sum"] > 0
    assert told(watch)["jvm_gc_collection_seconds_count"] == counted["jvm_gc_collection_seconds_count"]
    watch.stop()


def test_the_loop_is_idle_while_its_thread_does_nothing() -> None:
    now_s, worked_s = 100.0, 3.0
    watch = ProcessWatch(lambda: now_s, lambda: worked_s)
    now_s, worked_s = 110.0, 5.5
    page = told(watch)
    assert page["kafka_network_socketserver_networkprocessoravgidle_percent"] == 0.75
    assert page["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"] == 0.75
    now_s, worked_s = 200.0, 110.0
    assert told(watch)["kafka_network_socketserver_networkprocessoravgidle_percent"] == 0, "never below nothing"
