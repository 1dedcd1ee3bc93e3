"""Consume, transform, produce with each library, as its own guide tells to do it. Used by the processes of `worker`.

What differs is what each can promise when a member is replaced while it works. librdkafka, kafka-python and our own
client tell the group's coordinator which generation they are of. aiokafka does not, so its offsets are safe by its
transactional id alone: it has one worker, which takes all partitions, and whose successor has the same id. Nor does it
look at an error that OffsetFetch has for the whole group (versions from 2 on): a coordinator that has moved or is still
loading is "nothing is committed" to it, and it would begin anew. So its worker asks librdkafka where the group stands.
kafka-python 3.0.12 forgets a request of a transaction when the coordinator cannot be dialled, and waits for its answer
for good, and librdkafka 2.16 may not come back from send_offsets_to_transaction when its coordinator has moved (#5511),
whatever time-out it is given: the supervisor ends their workers when they say nothing any more.
librdkafka's members have no names: with them some were fenced after all nodes had been killed, and their consumers were
silent from then on. Heartbeats with a name and without a member id, which brokers fence, would explain it; it was not
seen on the wire.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

POLL_S = 0.2
RECORDS_MAX = 40


class Got(NamedTuple):
    """A record of the source."""

    partition: int
    offset: int
    value: bytes


class Plan(NamedTuple):
    """What a worker is to do. Without a source it makes records up."""

    library: str
    protocol: str
    name: str
    bootstrap: str
    transactional_id: str
    source: str
    target: str
    group: str
    instance: str
    partitions: int
    rest_s: float
    session_ms: int
    transaction_ms: int
    notice_ms: int
    """How long a request may take: longer than any fault for clients that cannot tell a late end of a transaction."""


class Stale(Exception):
    """The consumer is no member at the moment: what it has read is not its own to commit."""


class Copier(ABC):
    """One producer with a transactional id and, where there is a source, one consumer."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @abstractmethod
    def start(self) -> None:
        """The producer first: what its predecessor left is decided before anybody asks where the group stands."""

    @abstractmethod
    def poll(self) -> list[Got]: ...
    @abstractmethod
    def begin(self) -> None: ...
    @abstractmethod
    def send(self, partition: int, value: bytes) -> None: ...
    @abstractmethod
    def send_offsets(self, ends: dict[int, int]) -> None: ...
    @abstractmethod
    def commit(self) -> None: ...
    @abstractmethod
    def abort(self) -> None: ...
    @abstractmethod
    def rewind(self) -> None:
        """Back to where the group stands."""

    @abstractmethod
    def close(self) -> None: ...

    def may_abort(self, failure: Exception) -> bool:
        """Whether the producer stays usable when the transaction is aborted."""
        return isinstance(failure, Stale)

    def rest(self, seconds: float) -> None:
        """The rate of a worker is part of the load."""
        threading.Event().wait(seconds)


class Confluent(Copier):
    def start(self) -> None:
        import confluent_kafka

        self._library = confluent_kafka
        plan = self.plan
        quick = {
            "bootstrap.servers": plan.bootstrap, "socket.connection.setup.timeout.ms": 3_000, "log_level": 0,
            "retry.backoff.ms": 50, "retry.backoff.max.ms": 500, "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500, "topic.metadata.refresh.fast.interval.ms": 100,
        }  # fmt: skip
        self._producer = confluent_kafka.Producer({
            **quick, "transactional.id": plan.transactional_id, "transaction.timeout.ms": plan.transaction_ms,
            "message.timeout.ms": plan.transaction_ms, "socket.timeout.ms": plan.notice_ms, "linger.ms": 5,
        })  # fmt: skip
        self._patiently(self._producer.init_transactions)
        if not plan.source:
            return
        timing: dict[str, Any] = {"session.timeout.ms": plan.session_ms, "heartbeat.interval.ms": plan.session_ms // 6}
        self._consumer = confluent_kafka.Consumer({
            **quick, "group.id": plan.group, "group.protocol": plan.protocol, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "isolation.level": "read_committed", "socket.timeout.ms": 5_000,
            "topic.metadata.refresh.interval.ms": 2_000, "fetch.wait.max.ms": 200, "fetch.error.backoff.ms": 50,
            **(timing if plan.protocol == "classic" else {}),
        })  # fmt: skip

        def served(*_: Any) -> None:
            """With callbacks partitions come and go in `consume` alone, not behind the back of a transaction."""

        self._consumer.subscribe([plan.source], on_assign=served, on_revoke=served, on_lost=served)

    def _patiently(self, call: Callable[[float], T]) -> T:
        """Calls again while that may help; not for longer than a transaction may last, for it is aborted by then."""
        until = time.monotonic() + self.plan.transaction_ms / 1000
        while True:
            try:
                return call(5.0)
            except self._library.KafkaException as failure:
                print(f"again: {failure}", flush=True)
                if not failure.args[0].retriable() or time.monotonic() > until:
                    raise

    def poll(self) -> list[Got]:
        records = self._consumer.consume(RECORDS_MAX, timeout=POLL_S)
        found = [Got(each.partition(), each.offset(), each.value()) for each in records if each.error() is None]
        self._metadata = self._consumer.consumer_group_metadata()
        return found

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, partition: int, value: bytes) -> None:
        self._producer.produce(self.plan.target, value, partition=partition)
        self._producer.poll(0)

    def send_offsets(self, ends: dict[int, int]) -> None:
        places = [self._library.TopicPartition(self.plan.source, *end) for end in ends.items()]
        self._patiently(lambda s: self._producer.send_offsets_to_transaction(places, self._metadata, s))

    def commit(self) -> None:
        self._patiently(self._producer.commit_transaction)

    def abort(self) -> None:
        self._patiently(self._producer.abort_transaction)

    def may_abort(self, failure: Exception) -> bool:
        of_broker = isinstance(failure, self._library.KafkaException) and failure.args[0].txn_requires_abort()
        return of_broker or super().may_abort(failure)

    def rewind(self) -> None:
        assigned = self._consumer.assignment()
        if assigned:
            for place in self._patiently(lambda s: self._consumer.committed(assigned, timeout=s)):
                if place.offset < 0:
                    place.offset = self._library.OFFSET_BEGINNING
                self._consumer.seek(place)

    def close(self) -> None:
        if self.plan.source:
            self._consumer.close()


class KafkaPython(Copier):
    def start(self) -> None:
        # The library reads its schemas through a call that Python 3.11 deprecates.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import kafka
        self._library = kafka
        plan = self.plan
        quick: dict[str, Any] = {
            "bootstrap_servers": plan.bootstrap.split(","), "retry_backoff_ms": 50, "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 500,
        }  # fmt: skip
        self._producer = kafka.KafkaProducer(
            **quick, transactional_id=plan.transactional_id, transaction_timeout_ms=plan.transaction_ms,
            request_timeout_ms=plan.notice_ms, delivery_timeout_ms=plan.notice_ms + 1_000, linger_ms=5,
            max_block_ms=2 * plan.notice_ms,
        )  # fmt: skip
        self._producer.init_transactions()
        if not plan.source:
            return
        self._consumer = kafka.KafkaConsumer(
            **quick, group_id=plan.group, enable_auto_commit=False, auto_offset_reset="earliest",
            isolation_level="read_committed", session_timeout_ms=plan.session_ms, metadata_max_age_ms=2_000,
            heartbeat_interval_ms=plan.session_ms // 6, request_timeout_ms=max(5_000, plan.session_ms + 2_000),
            fetch_max_wait_ms=200, **({"group_instance_id": plan.instance} if plan.instance else {}),
        )  # fmt: skip
        self._consumer.subscribe([plan.source])

    def poll(self) -> list[Got]:
        found = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=RECORDS_MAX)
        self._metadata = self._consumer.group_metadata()
        return [Got(each.partition, each.offset, each.value) for records in found.values() for each in records]

    def begin(self) -> None:
        # Its heartbeats may find out by themselves that it is no member any more, and without a generation its offsets
        # would be taken from whoever they come.
        if self.plan.source and self._metadata.generation_id < 0:
            raise Stale
        self._producer.begin_transaction()

    def send(self, partition: int, value: bytes) -> None:
        self._producer.send(self.plan.target, value, partition=partition)

    def send_offsets(self, ends: dict[int, int]) -> None:
        structs = self._library.structs
        places = {
            structs.TopicPartition(self.plan.source, partition): structs.OffsetAndMetadata(offset, "", -1)
            for partition, offset in ends.items()
        }
        self._producer.send_offsets_to_transaction(places, self._metadata)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def may_abort(self, failure: Exception) -> bool:
        # What is fatal, the abort tells.
        return isinstance(failure, self._library.errors.KafkaError) or super().may_abort(failure)

    def rewind(self) -> None:
        for place in self._consumer.assignment():
            offset = self._consumer.committed(place)
            if offset is None:
                self._consumer.seek_to_beginning(place)
            else:
                self._consumer.seek(place, offset)

    def close(self) -> None:
        self._producer.close(timeout=5)
        if self.plan.source:
            self._consumer.close(autocommit=False)


class AioKafka(Copier):
    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._run(self._start())

    async def _start(self) -> None:
        import aiokafka

        self._library = aiokafka
        plan = self.plan
        quick: dict[str, Any] = {
            "bootstrap_servers": plan.bootstrap.split(","), "retry_backoff_ms": 50, "metadata_max_age_ms": 2_000,
        }  # fmt: skip
        self._producer = aiokafka.AIOKafkaProducer(
            **quick, transactional_id=plan.transactional_id, transaction_timeout_ms=plan.transaction_ms,
            request_timeout_ms=plan.notice_ms, linger_ms=5,
        )  # fmt: skip
        await self._producer.start()
        if plan.source:
            self._consumer = aiokafka.AIOKafkaConsumer(
                **quick, group_id=plan.group, enable_auto_commit=False, auto_offset_reset="earliest",
                isolation_level="read_committed", request_timeout_ms=5_000, fetch_max_wait_ms=200,
            )  # fmt: skip
            self._places = [aiokafka.TopicPartition(plan.source, each) for each in range(plan.partitions)]
            self._consumer.assign(self._places)
            await self._consumer.start()
            await self._seek()

    async def _seek(self) -> None:
        self._next = await asyncio.to_thread(where_group_stands, self.plan)
        for place in self._places:
            self._consumer.seek(place, self._next.get(place.partition, 0))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def poll(self) -> list[Got]:
        async def some() -> list[Got]:
            """It gives one batch of each partition at a time; a transaction of one record would be too slow."""
            until, gathered = self._loop.time() + POLL_S, list[Got]()
            while self._loop.time() < until and len(gathered) < RECORDS_MAX:
                found = await self._consumer.getmany(timeout_ms=50, max_records=RECORDS_MAX - len(gathered))
                gathered += [Got(each.partition, each.offset, each.value) for some in found.values() for each in some]
            # It begins anew by itself when a deposed leader tells it that it is out of range.
            fresh = [each for each in gathered if each.offset >= self._next.get(each.partition, 0)]
            self._next.update(ends_of(fresh))
            return fresh

        return self._run(some())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, partition: int, value: bytes) -> None:
        self._run(self._producer.send(self.plan.target, value, partition=partition))

    def send_offsets(self, ends: dict[int, int]) -> None:
        places = {
            self._library.TopicPartition(self.plan.source, partition): offset for partition, offset in ends.items()
        }
        self._run(self._producer.send_offsets_to_transaction(places, self.plan.group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def may_abort(self, failure: Exception) -> bool:
        return isinstance(failure, self._library.errors.KafkaError) or super().may_abort(failure)

    def rewind(self) -> None:
        self._run(self._seek())

    def rest(self, seconds: float) -> None:
        self._run(asyncio.sleep(seconds))

    def close(self) -> None:
        async def stop() -> None:
            await self._producer.stop()
            if self.plan.source:
                await self._consumer.stop()

        self._run(asyncio.wait_for(stop(), 10))


class Own(Copier):
    def start(self) -> None:
        from penstock import blocking

        plan = self.plan
        self._producer = blocking.Producer(
            plan.bootstrap, transactional_id=plan.transactional_id, transaction_timeout_ms=plan.transaction_ms,
            delivery_timeout_ms=plan.transaction_ms, request_timeout_ms=plan.notice_ms, linger_ms=5,
        )  # fmt: skip
        self._producer.__enter__()
        if not plan.source:
            return
        timing: dict[str, Any] = {"session_timeout_ms": plan.session_ms, "heartbeat_interval_ms": plan.session_ms // 6}
        self._consumer = blocking.Consumer(
            bootstrap_servers=plan.bootstrap, group_id=plan.group, group_protocol=plan.protocol, auto_commit=False,
            offset_reset="earliest", isolation_level="read_committed", request_timeout_ms=5_000,
            **(timing if plan.protocol == "classic" else {}),
            **({"group_instance_id": plan.instance} if plan.instance else {}),
        )  # fmt: skip
        self._consumer.subscribe([plan.source])

    def poll(self) -> list[Got]:
        from penstock.client.errors import ClientError

        try:
            records = self._consumer.poll(max_records=RECORDS_MAX, timeout_ms=POLL_S * 1000)
        except ClientError as failure:
            if not failure.retriable:
                raise
            return []
        return [Got(each.partition, each.offset, each.value or b"") for each in records]

    def begin(self) -> None:
        self._producer.begin()

    def send(self, partition: int, value: bytes) -> None:
        self._producer.send(self.plan.target, value, partition=partition)

    def send_offsets(self, ends: dict[int, int]) -> None:
        self._producer.send_offsets(self._consumer)

    def _patiently(self, call: Callable[[], T]) -> T:
        from penstock.client.errors import TimedOutWaiting

        while True:
            try:
                return call()
            except TimedOutWaiting:
                continue

    def commit(self) -> None:
        self._patiently(self._producer.commit)

    def abort(self) -> None:
        self._patiently(self._producer.abort)

    def may_abort(self, failure: Exception) -> bool:
        from penstock.client.errors import TransactionAbortable

        return isinstance(failure, TransactionAbortable) or super().may_abort(failure)

    def rewind(self) -> None:
        from penstock.client.errors import ClientError

        for partition, committed in self._patiently(self._consumer.committed).items():
            # It may have gone to another member meanwhile.
            with suppress(ClientError):
                if committed is None:
                    self._consumer.seek_to_start(partition)
                else:
                    self._consumer.seek(partition, committed.offset)

    def close(self) -> None:
        self._producer.close()
        if self.plan.source:
            self._consumer.close()


def where_group_stands(plan: Plan) -> dict[int, int]:
    """The committed offsets of a group by partition, as librdkafka is told when nothing of them is pending."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": plan.bootstrap, "group.id": plan.group, "isolation.level": "read_committed",
        "enable.auto.commit": False, "log_level": 0, "socket.timeout.ms": 5_000, "reconnect.backoff.max.ms": 500,
    })  # fmt: skip
    places = [confluent_kafka.TopicPartition(plan.source, partition) for partition in range(plan.partitions)]
    try:
        while True:
            try:
                found = consumer.committed(places, timeout=10.0)
            except confluent_kafka.KafkaException as failure:
                if not failure.args[0].retriable():
                    raise
            else:
                return {each.partition: each.offset for each in found if each.offset >= 0}
    finally:
        consumer.close()


LIBRARIES: dict[str, Callable[[Plan], Copier]] = {
    "confluent": Confluent, "kafka-python": KafkaPython, "aiokafka": AioKafka, "penstock": Own,
}  # fmt: skip


def ends_of(records: Sequence[Got]) -> dict[int, int]:
    """Where the group stands when these are copied, by partition."""
    ends: dict[int, int] = {}
    for each in records:
        ends[each.partition] = max(ends.get(each.partition, 0), each.offset + 1)
    return ends
