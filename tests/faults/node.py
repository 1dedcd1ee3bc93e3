"""A Penstock node as a process that can be killed, and a ledger of what it acknowledged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.processes import free_ports, wait_for
from tests.patience import Patience, within

START_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 20.0


def let_pass(seconds: float) -> None:
    """The instant of the kill is what is being varied, so time itself is the condition here."""
    until = time.monotonic() + seconds
    wait_for("a random instant", lambda: time.monotonic() >= until, timeout_s=5, pause_s=0.001)


class NodeProcess:
    """`penstock dev` on a fixed port with its data in `directory`, started and stopped as often as a test likes."""

    def __init__(self, directory: Path, *settings: str, flags: Sequence[str] = ()) -> None:
        self.directory, self.settings = directory, ("penstock.admin.listener=", *settings)
        self._flags = flags
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self.log = directory.parent / f"{directory.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node runs"
        return self._process.pid

    def start(self) -> None:
        options = [word for setting in self.settings for word in ("-c", setting)]
        command = [sys.executable, "-m", "penstock.cli.main", "dev", "--port", str(self.port), "--log-level", "info"]
        size = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [*command, *self._flags, "--data-dir", str(self.directory), *options], stdout=out, stderr=out
            )

        def ready() -> bool:
            assert self._process is not None
            code = self._process.poll()
            assert code is None, f"the node ended with {code}:\n{self.words(size)[-3000:]}"
            return "Penstock is ready" in self.words(size)

        wait_for("the node to be ready", ready, timeout_s=START_TIMEOUT_S)

    def words(self, since: int = 0) -> str:
        with self.log.open("rb") as file:
            file.seek(since)
            return file.read().decode("utf-8", "replace")

    def kill(self) -> None:
        """kill -9: no handler runs, nothing is flushed."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def ended(self) -> int:
        """The exit code of a node that ends by itself; below 0 it is the signal that killed it."""
        assert self._process is not None, "the node was started"
        return self._process.wait(timeout=within(START_TIMEOUT_S))

    def _end(self, number: int) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(timeout=within(30))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        spelled = {key.replace("_", "."): value for key, value in configs.items()}
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.create_topics([NewTopic(name, partitions, 1, config=spelled)])[name].result(within(30))


class Ledger:
    """Produces numbered records in a thread, whatever happens to the node, and notes where each was acknowledged."""

    def __init__(self, address: str, topic: str, partitions: int, **settings: object) -> None:
        self.topic, self.partitions = topic, partitions
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failed = 0
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": within(120_000),
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "queue.buffering.max.messages": 5_000,
                "logger": None,
                "log_level": 0,
                **settings,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger")

    def __enter__(self) -> Ledger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def finish(self) -> None:
        """Stops producing and waits for the last acknowledgements."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(within(60)) == 0, "every record was answered in the end"

    def wait_for_more(self, count: int) -> None:
        target = len(self.acknowledged) + count
        wait_for(f"{count} more acknowledgements", lambda: len(self.acknowledged) >= target, timeout_s=60)

    def _note(self, error: KafkaError | None, record: Message) -> None:
        if error is not None:
            self.failed += 1
            return
        key = (record.partition(), record.offset())
        assert key not in self.acknowledged, f"offset {key} was acknowledged twice"
        self.acknowledged[key] = record.value()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            try:
                self._producer.produce(
                    self.topic,
                    b"%010d" % number + os.urandom(90),
                    partition=number % self.partitions,
                    on_delivery=self._note,
                )
                number += 1
            except BufferError:
                self._producer.poll(0.05)
            if number % 100 == 0:
                self._producer.poll(0.002)


def read_all(address: str, topic: str, partitions: Sequence[int], **login: str) -> dict[tuple[int, int], bytes]:
    """Everything a topic holds, by (partition, offset); offsets must run without a gap. `login` is librdkafka's."""
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": "judge", "enable.auto.commit": False, "auto.offset.reset": "error",
        "enable.partition.eof": False, "check.crcs": True, "isolation.level": "read_uncommitted",
        **login,
    })  # fmt: skip
    found: dict[tuple[int, int], bytes] = {}
    try:
        for partition in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=within(20))
            consumer.assign([TopicPartition(topic, partition, low)])
            position, patience = low, Patience(READ_TIMEOUT_S)
            while position < high:
                # Waits for as many as it is asked for, also behind an error; so it is asked for little time.
                records = consumer.consume(min(5_000, high - position), timeout=0.5)
                if records:
                    patience = Patience(READ_TIMEOUT_S)
                assert not patience.over(), f"{topic}-{partition} gave nothing at {position}, it ends at {high}"
                for record in records:
                    if record.error():
                        raise KafkaException(record.error())
                    assert record.offset() == position, f"a gap: {record.offset()} came where {position} was due"
                    found[partition, position] = record.value()
                    position += 1
    finally:
        consumer.close()
    return found
