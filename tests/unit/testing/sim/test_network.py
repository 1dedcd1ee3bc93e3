"""The simulated network keeps TCP's promises and no others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.testing.sim.loop import SimLoop
from penstock.testing.sim.network import LOST, SimNet
from penstock.testing.sim.world import World

LIMIT_S = 60.0


class Peer(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard = b""
        self.ended: list[Exception | None] = []
        self.eof = self.full = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def eof_received(self) -> bool:
        self.eof = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.append(exc)

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False


class Pair:
    """A server and a client, connected."""

    def __init__(self, *, seed: int = 1) -> None:
        self.world = World(seed)
        self.network = self.world.network
        self.server_loop, self.client_loop = self.world.new_loop("s", "s"), self.world.new_loop("c", "c")
        for host in ("s", "c"):
            self.network.host_up(host)
        self.accepted: list[Peer] = []
        self.do(self.server_loop, SimNet(self.network, self.server_loop, "s").listen("s", 9, self._accept))
        self.client = Peer()
        self.do(self.client_loop, self.client_loop.create_connection(lambda: self.client, "s", 9))
        self.run(lambda: bool(self.accepted))

    def _accept(self) -> Peer:
        self.accepted.append(Peer())
        return self.accepted[-1]

    @property
    def server(self) -> Peer:
        return self.accepted[0]

    def run(self, until: Any) -> bool:
        return self.world.scheduler.run(until, deadline=self.world.scheduler.now + LIMIT_S)

    def do(self, loop: SimLoop, work: Any) -> Any:
        task = loop.create_task(work)
        assert self.run(task.done), "it ends"
        return task.result()


def test_bytes_arrive_whole_and_in_order_whatever_the_jitter() -> None:
    pair = Pair()
    pair.network.jitter_s, pair.network.split_rate = 0.5, 0.5
    sent = b"".join(b"%d," % number for number in range(200))
    for number in range(200):
        pair.client.transport.write(b"%d," % number)
    assert pair.run(lambda: len(pair.server.heard) == len(sent))
    assert pair.server.heard == sent


def test_a_partition_holds_bytes_back_in_one_direction_and_gives_them_after() -> None:
    pair = Pair()
    pair.network.block("c", "s")
    pair.client.transport.write(b"asked")
    pair.server.transport.write(b"told")
    assert not pair.run(lambda: bool(pair.server.heard))
    assert (pair.server.heard, pair.client.heard) == (b"", b"told")
    pair.client.transport.write(b" again")
    pair.network.unblock([("c", "s")])
    assert pair.run(lambda: pair.server.heard == b"asked again")


def test_what_is_late_by_a_whim_holds_back_what_comes_after_it_and_nobody_else() -> None:
    pair = Pair()
    began_s = pair.world.scheduler.now
    pair.network.whim = lambda end, item: 2.0 if item == b"late" else 0.0
    pair.client.transport.write(b"late")
    pair.client.transport.write(b" and after")
    pair.server.transport.write(b"at once")
    assert pair.run(lambda: pair.client.heard == b"at once")
    assert pair.world.scheduler.now < began_s + 1.0
    assert pair.run(lambda: pair.server.heard == b"late and after")
    assert pair.world.scheduler.now >= began_s + 2.0


def test_a_partition_may_hold_what_is_late_for_longer() -> None:
    pair = Pair()
    pair.network.whim = lambda end, item: 0.5 if item == b"late" else 0.0
    pair.client.transport.write(b"late")
    pair.run(lambda: pair.world.scheduler.now > 0.2)
    pair.network.block("c", "s")
    pair.client.transport.write(b" and after")
    assert not pair.run(lambda: pair.server.heard == b"late and after")
    pair.network.whim = None
    pair.network.unblock([("c", "s")])
    assert pair.run(lambda: pair.server.heard == b"late and after")


def test_a_whim_may_lose_the_connection() -> None:
    pair = Pair()
    pair.network.whim = lambda end, item: LOST
    pair.client.transport.write(b"asked")
    assert pair.run(lambda: bool(pair.client.ended and pair.server.ended))
    assert b"asked".startswith(pair.server.heard)


def test_a_clean_close_is_heard_after_the_bytes_before_it() -> None:
    pair = Pair()
    pair.client.transport.write(b"bye")
    pair.client.transport.close()
    assert pair.run(lambda: bool(pair.server.ended))
    assert (pair.server.heard, pair.server.eof, pair.server.ended, pair.client.ended) == (b"bye", True, [None], [None])


def test_a_process_that_is_killed_resets_its_connections() -> None:
    pair = Pair()
    pair.server_loop.kill()
    pair.network.process_died(pair.server_loop, "s", silent=False)
    assert pair.run(lambda: bool(pair.client.ended))
    assert isinstance(pair.client.ended[0], ConnectionResetError)


def test_a_machine_that_lost_power_says_nothing_until_it_is_back() -> None:
    pair = Pair()
    pair.server_loop.kill()
    pair.network.process_died(pair.server_loop, "s", silent=True)
    pair.client.transport.write(b"hello?")
    assert not pair.run(lambda: bool(pair.client.ended))
    pair.network.host_up("s")
    pair.client.transport.write(b"hello?")
    assert pair.run(lambda: bool(pair.client.ended))


def test_nobody_listening_is_a_refusal_and_nobody_there_is_silence() -> None:
    pair = Pair()
    with pytest.raises(ConnectionRefusedError):
        pair.do(pair.client_loop, pair.client_loop.create_connection(Peer, "s", 10))
    waiting = pair.client_loop.create_task(pair.client_loop.create_connection(Peer, "nowhere", 9))
    assert not pair.run(waiting.done)


def test_a_reader_that_pauses_fills_the_writer_up() -> None:
    pair = Pair()
    pair.server.transport.pause_reading()
    pair.client.transport.write(bytes(400 << 10))
    assert pair.client.full
    pair.run(lambda: False)
    assert pair.server.heard == b""
    pair.server.transport.resume_reading()
    assert pair.run(lambda: len(pair.server.heard) == 400 << 10 and not pair.client.full)


def test_a_lost_connection_ends_on_both_sides_and_never_out_of_order() -> None:
    pair = Pair(seed=5)
    pair.network.drop_rate = 0.05
    sent = b""
    for number in range(400):
        piece = b"%d," % number
        pair.client.transport.write(piece)
        sent += piece
    assert pair.run(lambda: bool(pair.client.ended and pair.server.ended))
    assert sent.startswith(pair.server.heard)
