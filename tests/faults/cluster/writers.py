"""Producers that go on whatever happens, one thread each, and note what became of every value.

Four libraries with idempotence and acks=all, tuned only to notice trouble soon and to give up late; and one producer
without a library that sends each value once and never again, so that a refusal means what it says.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import confluent_kafka
from aiokafka import AIOKafkaProducer

import penstock.blocking
from tests.compat.batches import Record, encode_batch
from tests.compat.cluster import view
from tests.compat.wire import Connection, produce_reply, produce_request
from tests.faults.cluster.history import History, Outcome, Send, value_of
from tests.faults.cluster.logins import OPEN, Login
from tests.patience import within

# The library reads its schemas through a call that Python 3.11 deprecates; warnings are errors here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

UNANSWERED_MAX = 200
GIVE_UP_MS = 120_000
# A silent broker is noticed after this time; one that has no processor is not silent.
NOTICE_MS = 5_000
NOT_ENOUGH_REPLICAS = 19


class Done(Protocol):
    """Called once with what became of a send."""

    def __call__(self, outcome: Outcome, offset: int = -1, words: str = "") -> None: ...


class Writer(ABC):
    """Sends numbered values to the partitions of a topic in turn, about `rate_per_s` of them a second."""

    reads_trust_once = False
    """Whether it looks at whom to trust only when it begins; such a client begins `anew` when it is told to."""

    hears_silence = True
    """Whether it turns away from a broker that is silent for a few seconds."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: Sequence[int],
        history: History,
        rate_per_s: float,
        login: Login = OPEN,
    ) -> None:
        self.name = type(self).__name__.lower()
        self.bootstrap, self.topic, self.partitions, self.history = bootstrap, topic, list(partitions), history
        self.login = login
        self.anew = threading.Event()
        """Set by whoever wants it to begin again; cleared when it has."""
        self.unanswered = 0
        self.acked = dict.fromkeys(partitions, 0)
        self.failures: list[str] = []
        """What went wrong for good: a value that was given up, or the client itself."""
        self._interval_s = 1 / rate_per_s
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more sends; returns when the last is answered or given up."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.work()
        except Exception as failure:
            logging.getLogger(__name__).exception("%s has ended", self.name)
            self.failures.append(f"the client ended: {failure!r}")

    @abstractmethod
    def work(self) -> None:
        """Sends until it is told to stop, then waits for what is unanswered."""

    def pace(self) -> Any:
        """Yields (partition, number) at the rate, while there is room for one more that is unanswered."""
        numbers = dict.fromkeys(self.partitions, 0)
        due = time.monotonic()
        while not self._stopping.is_set():
            for partition in self.partitions:
                due = max(due + self._interval_s, time.monotonic() - 1)
                self._stopping.wait(max(0.0, due - time.monotonic()))
                if self._stopping.is_set():
                    return
                if self.unanswered < UNANSWERED_MAX:
                    yield partition, numbers[partition]
                    numbers[partition] += 1
                else:
                    yield None

    def noting(self, partition: int, number: int) -> Done:
        """What is to be called once with the outcome of a send."""
        with self._lock:
            self.unanswered += 1

        def done(outcome: Outcome, offset: int = -1, words: str = "") -> None:
            self.history.sends.append(Send(self.name, partition, number, outcome, offset))
            with self._lock:
                self.unanswered -= 1
                self.acked[partition] += outcome is Outcome.ACKED
            if words:
                self.failures.append(f"{value_of(self.name, number)} to {partition}: {words}")

        return done

    def value(self, number: int) -> bytes:
        return value_of(self.name, number).encode()


class Confluent(Writer):
    reads_trust_once = True

    def _producer(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer({
            "bootstrap.servers": self.bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 5,
            "message.timeout.ms": within(GIVE_UP_MS), "socket.timeout.ms": within(NOTICE_MS),
            "socket.connection.setup.timeout.ms": within(2_000),
            "retry.backoff.ms": 50, "retry.backoff.max.ms": 500, "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500, "topic.metadata.refresh.fast.interval.ms": 100, "log_level": 0,
            **self.login.librdkafka,
        })  # fmt: skip

    def work(self) -> None:
        producer = self._producer()
        for turn in self.pace():
            if self.anew.is_set():
                producer.flush(within(GIVE_UP_MS) / 1000)
                producer = self._producer()
                self.anew.clear()
            if turn is not None:
                partition, number = turn
                done = self.noting(partition, number)

                def delivered(error: Any, message: Any, done: Any = done) -> None:
                    if error is None:
                        done(Outcome.ACKED, message.offset())
                    else:
                        done(Outcome.UNKNOWN, -1, str(error))

                producer.produce(self.topic, self.value(number), partition=partition, on_delivery=delivered)
            producer.poll(0)
        producer.flush(within(GIVE_UP_MS) / 1000)


class KafkaPython(Writer):
    hears_silence = False

    def work(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap.split(","), enable_idempotence=True, acks="all", linger_ms=5,
            delivery_timeout_ms=within(GIVE_UP_MS), request_timeout_ms=within(NOTICE_MS), retry_backoff_ms=50,
            reconnect_backoff_ms=50, reconnect_backoff_max_ms=500, max_block_ms=within(GIVE_UP_MS),
        )  # fmt: skip
        for turn in self.pace():
            if turn is None:
                continue
            partition, number = turn
            done = self.noting(partition, number)
            sent = producer.send(self.topic, self.value(number), partition=partition)
            sent.add_callback(lambda found, done=done: done(Outcome.ACKED, found.offset))
            sent.add_errback(lambda error, done=done: done(Outcome.UNKNOWN, -1, repr(error)))
        producer.flush(within(GIVE_UP_MS) / 1000)
        producer.close(timeout=within(5))


class AioKafka(Writer):
    hears_silence = False

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap.split(","), enable_idempotence=True, acks="all", linger_ms=5,
            # It gives a batch up after this time, too: it has no other.
            request_timeout_ms=within(GIVE_UP_MS), retry_backoff_ms=50, metadata_max_age_ms=2_000,
        )  # fmt: skip
        await producer.start()
        answers: set[asyncio.Task[None]] = set()
        try:
            turns = self.pace()
            while (turn := await asyncio.to_thread(next, turns, "over")) != "over":
                if turn is None:
                    continue
                partition, number = turn
                done = self.noting(partition, number)
                sent = await producer.send(self.topic, self.value(number), partition=partition)
                answer = asyncio.create_task(self._answer(sent, done))
                answers.add(answer)
                answer.add_done_callback(answers.discard)
            await producer.flush()
            await asyncio.gather(*answers)
        finally:
            await producer.stop()

    @staticmethod
    async def _answer(sent: Any, done: Any) -> None:
        try:
            done(Outcome.ACKED, (await sent).offset)
        except Exception as error:
            done(Outcome.UNKNOWN, -1, repr(error))


class Own(Writer):
    def work(self) -> None:
        turns = self.pace()
        while not self._stopping.is_set():
            self._work(turns)

    def _work(self, turns: Any) -> None:
        with penstock.blocking.Producer(
            bootstrap_servers=self.bootstrap, acks="all", idempotence=True, delivery_timeout_ms=within(GIVE_UP_MS),
            request_timeout_ms=within(NOTICE_MS), max_block_ms=within(GIVE_UP_MS), **self.login.own,
        ) as producer:  # fmt: skip
            self.anew.clear()
            for turn in turns:
                if turn is not None:
                    self._send(producer, *turn)
                if self.anew.is_set():
                    break
            producer.flush()

    def _send(self, producer: penstock.blocking.Producer, partition: int, number: int) -> None:
        done = self.noting(partition, number)

        def delivered(report: Any, error: Any) -> None:
            if error is None:
                done(Outcome.ACKED, report.offset)
            else:
                done(Outcome.UNKNOWN, -1, repr(error))

        producer.send(self.topic, self.value(number), partition=partition, on_delivery=delivered)


class OneShot(Writer):
    """Each value goes out once. Only a refusal before the append is final; anything else leaves it open."""

    def work(self) -> None:
        self._leaders: dict[int, str] = {}
        self._links: dict[str, Connection] = {}
        for turn in self.pace():
            if turn is not None:
                partition, number = turn
                self._send(partition, number, self.noting(partition, number))
        self._hang_up()

    def _send(self, partition: int, number: int, done: Any) -> None:
        link = self._link(partition)
        if link is None:
            done(Outcome.REFUSED)  # nothing left this machine
            return
        batch = encode_batch([Record(self.value(number))], base_timestamp_ms=int(time.time() * 1000))
        try:
            reply = produce_reply(
                link.call(produce_request(self.topic, partition, batch, acks=-1, timeout_ms=within(2_000)))
            )
        except OSError:
            self._hang_up()
            done(Outcome.UNKNOWN)
            return
        if reply.error == 0:
            done(Outcome.ACKED, reply.base_offset)
        else:
            self._hang_up()
            done(Outcome.REFUSED if reply.error == NOT_ENOUGH_REPLICAS else Outcome.UNKNOWN)

    def _link(self, partition: int) -> Connection | None:
        for address in self.bootstrap.split(","):
            if self._leaders:
                break
            try:
                found = view(address, [self.topic], timeout_s=1)
            except OSError:
                continue
            self._leaders = {each.index: found.addresses.get(each.leader, "") for each in found.partitions}
        leader = self._leaders.get(partition, "")
        if leader not in self._links:
            try:
                host, _, port = leader.rpartition(":")
                self._links[leader] = Connection(host, int(port), timeout_s=3)
            except (OSError, ValueError):
                self._leaders = {}
                return None
        return self._links[leader]

    def _hang_up(self) -> None:
        for link in self._links.values():
            link.close()
        self._links, self._leaders = {}, {}


IDEMPOTENT: tuple[type[Writer], ...] = (Confluent, KafkaPython, AioKafka, Own)
EVERY: tuple[type[Writer], ...] = (*IDEMPOTENT, OneShot)
