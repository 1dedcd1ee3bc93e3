"""A member of a consumer group as a process that can be killed or frozen.

`python -m tests.faults.group_member LIBRARY BOOTSTRAP TOPIC GROUP PROTOCOL SESSION_MS` prints what it does, a line at a
time: `read PARTITION OFFSET VALUE` for every record, `committed PARTITION OFFSET` when the broker has confirmed it,
`lost` when a commit was refused because the group moved on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def penstock(bootstrap: str, topic: str, group: str, protocol: str, session_ms: int) -> None:
    from penstock.blocking import Consumer
    from penstock.client.errors import ClientError

    timing = (
        {} if protocol == "consumer" else {"session_timeout_ms": session_ms, "heartbeat_interval_ms": session_ms // 6}
    )
    consumer = Consumer(
        topic, bootstrap_servers=bootstrap, group_id=group, group_protocol=protocol, offset_reset="earliest",
        enable_auto_commit=False, **timing,
    )  # fmt: skip
    while True:
        try:
            records = consumer.poll(max_records=50, timeout_ms=200)
            if not records:
                continue
            ends: dict[int, int] = {}
            for record in records:
                say(f"read {record.partition} {record.offset} {(record.value or b'').decode()}")
                ends[record.partition] = record.offset + 1
            consumer.commit()
            for partition, offset in ends.items():
                say(f"committed {partition} {offset}")
        except ClientError as failure:
            say(f"lost {failure}")


def confluent(bootstrap: str, topic: str, group: str, protocol: str, session_ms: int) -> None:
    from confluent_kafka import Consumer, KafkaException

    timing = (
        {} if protocol == "consumer" else {"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 6}
    )
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "log_level": 0, "reconnect.backoff.max.ms": 200, **timing,
    })  # fmt: skip
    consumer.subscribe([topic])
    while True:
        records = [record for record in consumer.consume(50, timeout=0.2) if record.error() is None]
        if not records:
            continue
        for record in records:
            say(f"read {record.partition()} {record.offset()} {record.value().decode()}")
        try:
            for done in consumer.commit(asynchronous=False):
                if done.error is None:
                    say(f"committed {done.partition} {done.offset}")
        except KafkaException as failure:
            say(f"lost {failure}")


LIBRARIES: dict[str, Callable[[str, str, str, str, int], None]] = {"penstock": penstock, "confluent": confluent}

if __name__ == "__main__":
    _, library, bootstrap, topic, group, protocol, session_ms = sys.argv
    LIBRARIES[library](bootstrap, topic, group, protocol, int(session_ms))
