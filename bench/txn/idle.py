"""A hundred thousand transactional ids that nobody uses: what they weigh, what they cost at rest, and how they load."""

from __future__ import annotations

import select
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench import brokers
from bench.brokers import Running
from bench.txn.producers import Link
from bench.txn.speech import CLIENT_ID, must_be_again
from bench.txn.stage import Stage
from penstock.bench.lanes import open_socket, read_exactly
from penstock.client.errors import NotReachable
from penstock.coordinators.home import home_partition
from penstock.model.errors import COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
from penstock.protocol.frame import encode_request
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.compat import wire
from tests.compat.processes import wait_for

CONNECTIONS = 8
STATE_PARTITIONS = 50
PING_PAUSE_S = 0.001
LOAD_S = 120.0
_NOT_YET = {each.code for each in (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)}
_FIND_VERSION, _INIT_VERSION, _TRANSACTIONS = 3, 4, 1
_INIT_ERROR_AT = 4 + 1 + 4


def measure(stage: Stage) -> None:
    for name in stage.names:
        with brokers.running([name]) as (running,):
            _measure(stage, running)


def _measure(stage: Stage, running: Running) -> None:
    count, broker = stage.settings.idle_ids, running.name
    group = f"idle: {count:,} transactional ids"
    stage.say(f"{brokers.TITLES[broker]}: {count:,} idle transactional ids")
    # One that is not counted: the topic is made, and the code is loaded.
    create(running.bootstrap, ["first"])
    _at_rest(running)
    before, cpu_before = running.usage(), _resting_cpu(stage, running)
    took_s = create(running.bootstrap, [f"idle-{number}" for number in range(count)])
    stage.rate(group, "made", "1/s", broker, count / took_s)
    _at_rest(running)
    stage.cost(group, "memory", "KB an id", broker, (running.usage().rss_bytes - before.rss_bytes) / count / 1_000)
    stage.cost(group, "CPU at rest before", "ms/s", broker, cpu_before)
    stage.cost(group, "CPU at rest with them", "ms/s", broker, _resting_cpu(stage, running))
    running.node.stop()
    serving_s, loaded_s, longest_ms = start_and_load(running)
    stage.cost(group, "start until it answers", "s", broker, serving_s)
    stage.cost(group, "from then until all are loaded", "s", broker, loaded_s)
    stage.cost(group, "longest answer to others meanwhile", "ms", broker, longest_ms)
    _at_rest(running)
    weight = (running.usage().rss_bytes - before.rss_bytes) / count / 1_000
    stage.cost(group, "memory after the restart", "KB an id", broker, weight)


def create(address: str, ids: Sequence[str]) -> float:
    """InitProducerId for each, a few at a time; returns how long it took."""
    links = [Link(address) for _ in range(CONNECTIONS)]
    try:
        _wait_for_topic(links[0])
        waiting, left = iter(ids), len(ids)

        def next_of(link: Link, again: str | None = None) -> None:
            name = again or next(waiting, None)
            if name is None:
                return
            message = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)

            def answered(reply: bytes) -> None:
                nonlocal left
                (error,) = struct.unpack_from(">h", reply, _INIT_ERROR_AT)
                if error:
                    must_be_again(error, name)
                    next_of(link, name)
                    return
                left -= 1
                next_of(link)

            link.send(encode_request(0, CLIENT_ID, message, _INIT_VERSION), answered)

        began = time.perf_counter()
        for link in links:
            next_of(link)
        by_number = {link.socket.fileno(): link for link in links}
        poller = select.epoll()
        for number in by_number:
            poller.register(number, select.EPOLLIN)
        while left:
            for number, _events in poller.poll(30):
                by_number[number].receive()
        poller.close()
        return time.perf_counter() - began
    finally:
        for link in links:
            link.socket.close()


def _wait_for_topic(link: Link) -> None:
    wanted = FindCoordinatorRequest(key="first", key_type=_TRANSACTIONS)
    wait_for("a coordinator", lambda: link.call(wanted, _FIND_VERSION).error_code == 0, timeout_s=60, pause_s=0.1)


def _at_rest(running: Running) -> None:
    """Returns when the broker does little: what it was asked for last is done."""

    def quiet() -> bool:
        used = running.usage().cpu_s
        time.sleep(1.0)
        return running.usage().cpu_s - used < 0.3

    wait_for(f"{running.name} to be at rest", quiet, timeout_s=60)


def _resting_cpu(stage: Stage, running: Running) -> float:
    """Milliseconds of CPU a second."""

    def sample() -> float:
        used, began = running.usage().cpu_s, time.perf_counter()
        time.sleep(stage.settings.idle_s)
        return (running.usage().cpu_s - used) / (time.perf_counter() - began) * 1_000

    return stage.calm.sampled(sample, 1.0)


def start_and_load(running: Running) -> tuple[float, float, float]:
    """(seconds until it answers, from then until every partition of ids is loaded, the longest answer meanwhile)."""
    began = time.perf_counter()
    running.node.launch()
    link = wait_for("an answer", lambda: _reached(running.bootstrap), timeout_s=LOAD_S, pause_s=0.002)
    serving_s = time.perf_counter() - began
    wanted = DescribeTransactionsRequest(transactional_ids=one_of_each_partition(STATE_PARTITIONS))

    def loaded() -> bool:
        return not any(each.error_code in _NOT_YET for each in link.call(wanted, 0).transaction_states)

    with _pinging(running.bootstrap) as longest_ms:
        wait_for("all ids to be loaded", loaded, timeout_s=LOAD_S, pause_s=0.005)
    loaded_s = time.perf_counter() - began - serving_s
    link.socket.close()
    return serving_s, loaded_s, longest_ms[0]


def one_of_each_partition(partitions: int) -> list[str]:
    """A transactional id for each partition of the topic that keeps them."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(home_partition(f"idle-{number}", partitions), f"idle-{number}")
        number += 1
    return list(found.values())


def _reached(address: str) -> Link | None:
    try:
        link = Link(address)
        link.socket.sendall(wire.request(wire.API_VERSIONS, 0, b""))
        (size,) = struct.unpack(">i", read_exactly(link.socket, 4))
        read_exactly(link.socket, size)
    except (OSError, NotReachable):
        return None
    return link


@contextmanager
def _pinging(address: str) -> Iterator[list[float]]:
    """Somebody else asks something small all the time; the longest that an answer took, in milliseconds."""
    longest_ms, stopping = [0.0], threading.Event()
    socket, question = open_socket(address), wire.request(wire.API_VERSIONS, 0, b"")

    def ask() -> None:
        while not stopping.is_set():
            began = time.perf_counter()
            socket.sendall(question)
            (size,) = struct.unpack(">i", read_exactly(socket, 4))
            read_exactly(socket, size)
            longest_ms[0] = max(longest_ms[0], (time.perf_counter() - began) * 1_000)
            time.sleep(PING_PAUSE_S)

    thread = threading.Thread(target=ask, name="pings")
    thread.start()
    try:
        yield longest_ms
    finally:
        stopping.set()
        thread.join()
        socket.close()
