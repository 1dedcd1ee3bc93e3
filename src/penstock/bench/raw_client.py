"""Jobs of the raw client: requests that were encoded before, replies that are counted."""

from __future__ import annotations

import time
from array import array

from penstock.bench.jobs import Job, Moved, Start
from penstock.bench.raw import Load, fetch_load, latencies_ms, make_batch, produce_load
from penstock.model.errors import PenstockError

FILL_S_MAX = 600.0
UNBOUNDED_BYTES = 1 << 60


def produce(job: Job, start: Start) -> Moved:
    """A connection to the leader of every partition, five requests in flight on each."""
    batch, records = make_batch(job.record_bytes, job.batch_bytes, job.compression)
    start()
    cpu_s = time.process_time()
    return _moved(job, _load(job, batch, records, job.seconds, UNBOUNDED_BYTES), cpu_s)


def produce_at_rate(job: Job, start: Start) -> Moved:
    """The rate counts records; a request carries a batch of them and is due when its first record is."""
    assert job.rate_per_s is not None, "a rate was asked for"
    batch, records = make_batch(job.record_bytes, job.batch_bytes, job.compression)
    start()
    cpu_s, began = time.process_time(), time.perf_counter()
    measured = latencies_ms(
        job.leaders,
        job.topic,
        batch,
        acks=job.acks,
        rate_per_s=job.rate_per_s / records,
        seconds=job.seconds,
        lanes=len(job.leaders),
    )
    if not measured:
        raise PenstockError(
            f"at {job.rate_per_s:g} records/s not one batch of {records} is due within {job.seconds:g} s: "
            "make --batch-bytes smaller or --seconds longer"
        )
    done = len(measured) * records
    took_s = time.perf_counter() - began
    return Moved(took_s, done, done * job.record_bytes, time.process_time() - cpu_s, array("d", measured))


def consume(job: Job, start: Start) -> Moved:
    """Reads one partition over and over, a request at a time; of records only the headers of batches are looked at."""
    start()
    cpu_s = time.process_time()
    load = fetch_load(
        job.leaders[0], job.topic, seconds=job.seconds, bytes_max=UNBOUNDED_BYTES, partition=job.partitions[0]
    )
    return _moved(job, load, cpu_s)


def fill(job: Job, start: Start) -> Moved:
    """About `fill_bytes` of values into the topic, whatever they are when packed."""
    batch, records = make_batch(job.record_bytes, job.batch_bytes, job.compression)
    start()
    requests = max(1, job.fill_bytes // (records * job.record_bytes))
    return _moved(job, _load(job, batch, records, FILL_S_MAX, requests * len(batch)), time.process_time())


def _load(job: Job, batch: bytes, records: int, seconds: float, bytes_max: int) -> Load:
    return produce_load(
        job.leaders,
        job.topic,
        batch,
        records,
        acks=job.acks,
        seconds=seconds,
        bytes_max=bytes_max,
        lanes=len(job.leaders),
    )


def _moved(job: Job, load: Load, cpu_s: float) -> Moved:
    used_s = time.process_time() - cpu_s
    return Moved(load.seconds, load.records, load.records * job.record_bytes, used_s)
