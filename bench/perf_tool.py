"""kafka-producer-perf-test and kafka-consumer-perf-test: Kafka's own yardsticks, their client's cost included."""

from __future__ import annotations

import re
import subprocess

from tests.compat.apache.tools import java_command

TIMEOUT_S = 300
_SUMMARY = re.compile(r"(?P<count>\d+) records sent, (?P<rate>[\d.]+) records/sec \((?P<megabytes>[\d.]+) MB/sec\), .*")
# The tools' own default is 16 KB.
_BATCH_BYTES = 16_384


def records_per_s(
    bootstrap: str,
    topic: str,
    *,
    record_bytes: int,
    records: int,
    acks: str,
    codec: str,
    warmup_records: int,
    batch_bytes: int = _BATCH_BYTES,
) -> float:
    """Sends so many records at full speed and returns the tool's own figure for those after its warm-up."""
    said = _run(
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
        f"batch.size={batch_bytes}",
        "enable.idempotence=false",
    )
    summaries = [match for match in map(_SUMMARY.match, said.splitlines()) if match]
    if not summaries:
        raise RuntimeError(f"kafka-producer-perf-test gave no summary:\n{said}")
    return float(summaries[-1]["rate"])


def consumed_per_s(bootstrap: str, topic: str, *, group: str, records: int) -> float:
    """Reads so many records from the beginning and returns records a second of reading, without the time to join."""
    said = _run(
        "kafka-consumer-perf-test",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--group",
        group,
        "--num-records",
        str(records),
    )
    rows = [[word.strip() for word in line.split(",")] for line in said.splitlines() if line.count(",") >= 9]
    if len(rows) < 2:
        raise RuntimeError(f"kafka-consumer-perf-test gave no figures:\n{said}")
    figures = dict(zip(rows[0], rows[-1], strict=True))
    if int(figures["data.consumed.in.nMsg"]) < records:
        raise RuntimeError(f"kafka-consumer-perf-test read too little:\n{said}")
    return float(figures["fetch.nMsg.sec"])


def _run(tool: str, *words: str) -> str:
    command = java_command(tool, *words, heap="512m", compile_fully=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{tool} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout
