"""The load: producers of transactions in one thread, each with one transaction under way, over sockets of their own.

A closed loop: produce to every partition, one request for each broker that leads some; when all have answered, EndTxn;
when that has, the next transaction. It costs the machine about 60 µs a transaction and 10 µs for each further request,
so that the brokers and not the load bound the figures; how much of a core it took is told with each.
"""

from __future__ import annotations

import heapq
import itertools
import select
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from bench.txn.speech import (
    CLIENT_ID,
    NOBODY,
    Batch,
    EndFrame,
    Identity,
    ProduceFrame,
    end_told,
    must_be_again,
)
from penstock.bench.lanes import open_socket, read_exactly
from penstock.client.errors import NotReachable, TimedOutWaiting
from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.schema import schema_of
from tests.compat.cluster import view

BACKOFF_S: Final = 0.02
SILENCE_S: Final = 30.0
SETUP_S: Final = 60.0
TIMEOUT_MS: Final = 60_000
_ENDLESS: Final = 1 << 62
_FIND_VERSION, _INIT_VERSION, _TRANSACTIONS = 3, 4, 1

Answer = Callable[[bytes], None]


@dataclass(frozen=True)
class Place:
    """A topic and where it is led."""

    topic: str
    leaders: Sequence[str]
    """The address of each partition's leader; empty where nobody leads."""
    addresses: dict[int, str]

    @classmethod
    def of(cls, address: str, topic: str) -> Place:
        seen = view(address, [topic])
        found = sorted((each.index, each.leader) for each in seen.partitions if each.topic == topic)
        return cls(topic, [seen.addresses.get(leader, "") for _, leader in found], seen.addresses)


@dataclass(frozen=True)
class Shape:
    """What a transaction is."""

    partitions: int = 1
    record_bytes: int = 100
    records: int = 1
    """In a batch."""
    batches: int = 1
    """In each partition, one after the other."""
    transactional: bool = True
    aborted: float = 0.0
    """This share of all transactions, evenly spread."""


@dataclass
class Done:
    """What was done in the time that counted."""

    seconds: float = 0.0
    commits_ms: list[float] = field(default_factory=list)
    """From EndTxn to its answer."""
    transactions_ms: list[float] = field(default_factory=list)
    """From the first produce to the answer to EndTxn."""
    batch_bytes: int = 0
    repeated: int = 0
    """Requests that were told to come again."""
    client_cpu_s: float = 0.0

    @property
    def per_s(self) -> float:
        return len(self.transactions_ms) / self.seconds


class Link:
    """One connection of one producer, with at most one request in flight."""

    __slots__ = ("_answer", "_tail", "socket")

    def __init__(self, address: str) -> None:
        self.socket = open_socket(address)
        self._tail = b""
        self._answer: Answer | None = None

    def send(self, frame: bytes | bytearray, answer: Answer) -> None:
        self._answer = answer
        self.socket.sendall(frame)

    def receive(self) -> None:
        """Reads what is there; whoever waits is told when that was the rest of the reply."""
        data = self.socket.recv(1 << 17)
        if not data:
            raise NotReachable("the broker closed the connection")
        data = self._tail + data if self._tail else data
        if len(data) < 4 or len(data) - 4 < int.from_bytes(data[:4], "big"):
            self._tail = data
            return
        self._tail = b""
        answer, self._answer = self._answer, None
        assert answer is not None, "replies come to requests"
        answer(data[4:])

    def call(self, message: object, version: int) -> Any:
        self.socket.sendall(encode_request(0, CLIENT_ID, message, version))
        (size,) = struct.unpack(">i", read_exactly(self.socket, 4))
        _correlation, told = decode_response(read_exactly(self.socket, size), schema_of(message.__class__).key, version)
        return told


class Producer:
    """One transactional id and its transactions."""

    def __init__(self, crowd: Crowd, number: int, place: Place, shape: Shape, partitions: Sequence[int]) -> None:
        self._crowd, self._shape, self._place = crowd, shape, place
        self.id = f"{place.topic}-{number}"
        self._links: dict[str, Link] = {}
        self._batch = Batch(shape.record_bytes, shape.records, transactional=shape.transactional)
        by_leader: dict[str, list[int]] = {}
        for index in partitions:
            by_leader.setdefault(place.leaders[index], []).append(index)
        name = self.id if shape.transactional else None
        self._frames = [
            (self._link(address), ProduceFrame(name, place.topic, indexes, self._batch))
            for address, indexes in by_leader.items()
        ]
        self._bytes = len(self._batch.bytes) * len(partitions)
        self._who, self._sequence = NOBODY, 0
        self.done = 0
        """Transactions so far."""
        self._outstanding = self._batches_left = 0
        self._began = self._ending = 0.0
        if shape.transactional:
            self._end = EndFrame(self.id)
            self._coordinator = self._found()
            self._who = self._initialised()

    # -- before the load

    def _link(self, address: str) -> Link:
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = self._crowd.link(address)
        return link

    def _found(self) -> Link:
        anybody = self._link(self._place.leaders[0])
        told = self._asked(anybody, FindCoordinatorRequest(key=self.id, key_type=_TRANSACTIONS), _FIND_VERSION)
        return self._link(self._place.addresses[told.node_id])

    def _initialised(self) -> Identity:
        wanted = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=TIMEOUT_MS)
        told = self._asked(self._coordinator, wanted, _INIT_VERSION)
        return Identity(told.producer_id, told.producer_epoch)

    def _asked(self, link: Link, message: object, version: int) -> Any:
        ends = time.monotonic() + SETUP_S
        while True:
            told = link.call(message, version)
            if told.error_code == 0:
                return told
            must_be_again(told.error_code, self.id)
            if time.monotonic() > ends:
                raise TimedOutWaiting(f"no coordinator within {SETUP_S:.0f} s", where=self.id)
            time.sleep(BACKOFF_S)

    # -- transactions

    def begin(self) -> None:
        self._began, self._batches_left = time.perf_counter(), self._shape.batches
        self._next_batch()

    def _next_batch(self) -> None:
        if self._shape.transactional:
            self._batch.become(self._who, self._sequence)
            self._sequence += self._batch.records
            for _link, frame in self._frames:
                frame.patch()
        elif not self.done:
            for _link, frame in self._frames:
                frame.patch()
        self._outstanding = len(self._frames)
        for link, frame in self._frames:
            self._produce(link, frame)

    def _produce(self, link: Link, frame: ProduceFrame) -> None:
        def answered(reply: bytes) -> None:
            error = frame.error_in(reply)
            if error:
                self._crowd.again(error, self.id, lambda: self._produce(link, frame))
                return
            self._outstanding -= 1
            if not self._outstanding:
                self._produced()

        link.send(frame.bytes, answered)

    def _produced(self) -> None:
        self._batches_left -= 1
        self._crowd.wrote(self._bytes)
        if self._batches_left:
            self._next_batch()
        elif self._shape.transactional:
            self._ending = time.perf_counter()
            self._send_end()
        else:
            self._ending = time.perf_counter()
            self._over()

    def _send_end(self) -> None:
        # 0.1 is every tenth: the whole part of the running sum moves.
        share = self._shape.aborted
        aborts = int((self.done + 1) * share) > int(self.done * share)
        self._coordinator.send(self._end.of(self._who, commits=not aborts), self._ended)

    def _ended(self, reply: bytes) -> None:
        error, who = end_told(reply)
        if error:
            self._crowd.again(error, self.id, self._send_end)
            return
        self._who, self._sequence = who, 0
        self._over()

    def _over(self) -> None:
        self.done += 1
        self._crowd.over(self, self._began, self._ending)


class Crowd:
    """Producers side by side, and what they got done."""

    def __init__(self, place: Place, shape: Shape, producers: int) -> None:
        self._links: dict[int, Link] = {}
        self._poller = select.epoll()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._done = Done()
        self._counts = self._goes_on = False
        self._at_work = 0
        self._each = _ENDLESS
        self._producers: list[Producer] = []
        try:
            count = len(place.leaders)
            for number in range(producers):
                mine = [(number * shape.partitions + at) % count for at in range(shape.partitions)]
                self._producers.append(Producer(self, number, place, shape, mine))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._poller.close()
        for link in self._links.values():
            link.socket.close()

    def link(self, address: str) -> Link:
        link = Link(address)
        self._links[link.socket.fileno()] = link
        self._poller.register(link.socket.fileno(), select.EPOLLIN)
        return link

    # -- told by producers

    def again(self, error: int, who: str, say: Callable[[], None]) -> None:
        must_be_again(error, who)
        self._done.repeated += 1
        heapq.heappush(self._due, (time.perf_counter() + BACKOFF_S, next(self._order), say))

    def wrote(self, size: int) -> None:
        if self._counts:
            self._done.batch_bytes += size

    def over(self, producer: Producer, began: float, ending: float) -> None:
        if self._counts:
            now = time.perf_counter()
            self._done.transactions_ms.append((now - began) * 1_000)
            self._done.commits_ms.append((now - ending) * 1_000)
        if self._goes_on and producer.done < self._each:
            producer.begin()
        else:
            self._at_work -= 1

    # -- the loop

    def run(self, seconds: float, lead_s: float, cpu_s: Callable[[], float] = lambda: 0.0) -> tuple[Done, float]:
        """Counts for `seconds` after a lead; what is under way then is ended. Also the CPU that `cpu_s` counted."""
        self._begin_all(_ENDLESS)
        self._until(time.perf_counter() + lead_s)
        self._done, self._counts = Done(), True
        began, used, own = time.perf_counter(), cpu_s(), time.process_time()
        self._until(began + seconds)
        done = self._done
        done.seconds, done.client_cpu_s = time.perf_counter() - began, time.process_time() - own
        spent = cpu_s() - used
        self._finish()
        return done, spent

    def run_count(self, each: int) -> None:
        """So many transactions of every producer."""
        self._begin_all(each)
        while self._at_work:
            self._turn(SILENCE_S)

    def _begin_all(self, each: int) -> None:
        self._goes_on, self._each = True, each
        self._at_work = len(self._producers)
        for producer in self._producers:
            producer.begin()

    def _finish(self) -> None:
        self._counts = self._goes_on = False
        while self._at_work:
            self._turn(SILENCE_S)

    def _until(self, ends: float) -> None:
        while (left := ends - time.perf_counter()) > 0:
            self._turn(left)

    def _turn(self, longest_s: float) -> None:
        now = time.perf_counter()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2]()
        wait_s = min(longest_s, self._due[0][0] - now) if self._due else longest_s
        heard = self._poller.poll(max(wait_s, 0.0))
        if not heard and wait_s >= SILENCE_S:
            raise TimedOutWaiting(f"no answer within {SILENCE_S:.0f} s", where="transactions")
        links = self._links
        for number, _events in heard:
            links[number].receive()


@contextmanager
def crowd(place: Place, shape: Shape, producers: int) -> Iterator[Crowd]:
    made = Crowd(place, shape, producers)
    try:
        yield made
    finally:
        made.close()
