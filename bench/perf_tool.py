"""kafka-producer-perf-test as a load: Kafka's own yardstick, with the cost of its own client in it."""

from __future__ import annotations

import re
import subprocess

from tests.compat.apache.tools import java_command

_SUMMARY = re.compile(r"(?P<count>\d+) records sent, (?P<rate>[\d.]+) records/sec \((?P<megabytes>[\d.]+) MB/sec\), .*")


def records_per_s(
    bootstrap: str, topic: str, *, record_bytes: int, records: int, acks: str, codec: str, warmup_records: int
) -> float:
    """Sends so many records at full speed and returns the tool's own figure for those after its warm-up."""
    command = java_command(
        "kafka-producer-perf-test",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--record-size",
        str(record_bytes),
        "--num-records",
        str(records + warmup_records),
        "--warmup-records",
        str(warmup_records),
        "--throughput",
        "-1",
        "--command-property",
        f"acks={acks}",
        f"compression.type={codec}",
        "enable.idempotence=false",
        heap="512m",
        compile_fully=True,
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    summaries = [match for match in map(_SUMMARY.match, done.stdout.splitlines()) if match]
    if done.returncode != 0 or not summaries:
        raise RuntimeError(f"kafka-producer-perf-test failed:\n{done.stdout}\n{done.stderr}")
    return float(summaries[-1]["rate"])
