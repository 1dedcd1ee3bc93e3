"""The measured process: a Spark session with both formats that does what it is told, line by line.

`python -m bench.spark.measured` reads one JSON object a line ({"do": "read", ...}) and answers each with another: rows,
seconds, CPU seconds of the family. It is a driver like any other, so its figures are those of a user's program.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.spark.changes import change, send_changes
from bench.spark.family import Cpu, cpu_of_family
from bench.spark.freshness import ages_ms, quantile
from bench.spark.peaks import forget_peaks, largest_peak_mib
from tests.compat.spark.session import judging_session

Answer = dict[str, Any]
DRAIN_TIMEOUT_S = 300
KEYED_VERSION = 1_000


class Measured:
    """One session; every method is one thing that can be asked for."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def read(self, by: str, to: str, home: str, options: Mapping[str, str]) -> Answer:
        """A batch read of a topic, to noop or to Parquet."""
        frame = self._spark.read.format(by).options(**options).load()
        out = Path(home) / "parquet"
        shutil.rmtree(out, ignore_errors=True)
        if to == "noop":
            return _account(lambda: frame.write.format("noop").mode("overwrite").save())
        return _account(lambda: frame.write.parquet(str(out)))

    def lake(self, home: str, source: Mapping[str, str], sink: Mapping[str, str]) -> Answer:
        """A stream from a topic to a new Delta table, until the topic is drained."""
        table, checkpoint = Path(home) / "table", Path(home) / "checkpoint"
        for directory in (table, checkpoint):
            shutil.rmtree(directory, ignore_errors=True)

        def drain() -> None:
            self._stream(source, sink, table, checkpoint, availableNow=True).awaitTermination(DRAIN_TIMEOUT_S)

        answer = _account(drain)
        from deltalake import DeltaTable

        made = DeltaTable(str(table))
        answer["rows"] = sum(made.get_add_actions(flatten=True)["num_records"].to_pylist())
        answer["files"] = len(made.file_uris())
        return answer

    def topics(self, by: str, home: str, source: Mapping[str, str], sink: Mapping[str, str]) -> Answer:
        """A stream from a topic to another, until it is drained."""
        checkpoint = Path(home) / "topics-checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)

        def drain() -> None:
            rows = self._spark.readStream.format(by).options(**source).load().select("key", "value")
            writer = rows.writeStream.format(by).options(**sink).option("checkpointLocation", str(checkpoint))
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(DRAIN_TIMEOUT_S), "the topic was not drained in time"

        return _account(drain)

    def keyed(self, home: str, source: Mapping[str, str], table_format: str) -> Answer:
        """Changes of a topic into its table by key, until it is drained; the last batch and the largest task."""
        from penstock.spark.feed import Feed
        from penstock.spark.lake.keyed.settings import KeyedSettings
        from penstock.spark.lake.keyed.writer import keyed_writer
        from penstock.spark.lake.options import LakeOptions

        checkpoint = f"{home}/keyed-{table_format}-checkpoint"
        feed = Feed.of_source(source).to_property()
        options = {"path": _keyed(home, table_format), "table.format": table_format, "rows": "record", "feed": feed}
        write = keyed_writer(
            LakeOptions.of({**options, "checkpointLocation": checkpoint, "expire.after.days": "0.1"}),
            KeyedSettings(("id",)),
        )
        forget_peaks()
        rows = self._spark.readStream.format("penstock").options(**source).load()
        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(DRAIN_TIMEOUT_S), "the topic was not drained in time"
        batches = [each for each in query.recentProgress if each.numInputRows]
        return {
            "rows": sum(each.numInputRows for each in batches),
            "seconds": batches[-1].durationMs["triggerExecution"] / 1000,
            "peak_mib": largest_peak_mib(),
        }

    def keyed_union(self, home: str, bootstrap: str, topic: str, table_format: str, times: int) -> Answer:
        """Changes of one row each, asked for by key as soon as they are acknowledged: until the answer has them."""
        import penstock.spark

        path, waits = _keyed(home, table_format), list[float]()
        for number in range(-3, times):
            # A version that no merge has brought, so that only the end of the log can have it.
            version = KEYED_VERSION + number
            wanted = json.loads(change(number + 3, version))["name"]
            began = time.perf_counter()
            send_changes(bootstrap, topic, [number + 3], version)
            rows = penstock.spark.table(self._spark, topic, path=path, bootstrap=bootstrap)
            (row,) = rows.filter(f"id = {number + 3}").select("name").collect()
            assert row.name == wanted, f"a change that was acknowledged was not seen: {row.name}"
            if number >= 0:
                waits.append((time.perf_counter() - began) * 1000)
        return {"rows": times, "ages_ms": _quantiles(waits)}

    def freshness(self, home: str, source: Mapping[str, str], seconds: float, warm_s: float, every: str) -> Answer:
        """A stream that runs for so long beside a producer; the ages of rows when they became visible."""
        table = Path(home) / "fresh"
        query = self._stream(source, {}, table, Path(home) / "fresh-checkpoint", processingTime=every)
        before, began = cpu_of_family(), time.perf_counter()
        try:
            time.sleep(warm_s)
            after_ms = int(time.time() * 1000)
            query.awaitTermination(int(seconds))
        finally:
            query.stop()
        cpu = cpu_of_family().since(before)
        ages = ages_ms(table, after_ms=after_ms).to_pylist()
        took_s = time.perf_counter() - began
        return {"rows": len(ages), "seconds": took_s, **_cpu(cpu), "ages_ms": _quantiles(ages)}

    def union(self, home: str, source: Mapping[str, str], bootstrap: str, topic: str, times: int) -> Answer:
        """Marked records, each asked for by a union read as soon as it is acknowledged: until the answer is there."""
        from confluent_kafka import Producer

        import penstock.spark
        from penstock.spark.feed import Feed

        table = Path(home) / "union"
        sink = {"rows": "record", "feed": Feed.of_source(source).to_property()}
        query = self._stream(source, sink, table, Path(home) / "union-checkpoint", processingTime="5 seconds")
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
        waits: list[float] = []
        try:
            _until_there(table / "_delta_log")
            for number in range(-3, times):
                began, marker = time.perf_counter(), f"marker {number}".encode()
                producer.produce(topic, marker, key=marker)
                assert producer.flush(30) == 0
                rows = penstock.spark.table(self._spark, topic, path=str(table), bootstrap=bootstrap)
                seen = rows.filter(f"key = X'{marker.hex()}'").count()
                assert seen == 1, f"a record that was acknowledged was seen {seen} times"
                if number >= 0:
                    waits.append((time.perf_counter() - began) * 1000)
        finally:
            query.stop()
        return {"rows": times, "ages_ms": _quantiles(waits)}

    def _stream(
        self, source: Mapping[str, str], sink: Mapping[str, str], table: Path, checkpoint: Path, **trigger: Any
    ) -> Any:
        frame = self._spark.readStream.format("penstock").options(**source).load()
        writer = frame.writeStream.format("penstock-lake").options(**sink).option("path", str(table))
        return writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()


def _keyed(home: str, table_format: str) -> str:
    return f"{home}/keyed-{table_format}"


def _until_there(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not any(path.glob("*.json")):
        assert time.monotonic() < deadline, f"{path} was not made"
        time.sleep(0.05)


def _account(work: Callable[[], None]) -> Answer:
    before, began = cpu_of_family(), time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, **_cpu(cpu_of_family().since(before))}


def _cpu(used: Cpu) -> dict[str, float]:
    return {"cpu_s": used.all_s, "jvm_s": used.jvm_s, "python_s": used.python_s}


def _quantiles(values: list[float]) -> dict[str, float]:
    return {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99)} if values else {}


def main() -> None:
    # The JVM as anybody has it, with a heap that does not grow while figures are taken.
    spark = judging_session("local[2]", jvm="-Xms2g", settings={"spark.driver.memory": "2g"})
    measured = Measured(spark)
    print(json.dumps({"ready": spark.version}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = getattr(measured, asked.pop("do"))(**asked)
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
