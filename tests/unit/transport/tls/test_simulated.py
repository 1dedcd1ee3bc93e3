"""TLS in the simulated world: the same bytes on the wire are never seen twice, but their lengths and times are."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ed25519

from penstock.testing.sim.network import SimNet
from penstock.testing.sim.world import World
from penstock.transport.intake import Intake
from penstock.transport.tls.contexts import listening_context
from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.stores import load_key_store
from penstock.transport.tls.stream import TlsShared, TlsStream, TlsTerms, dial_tls
from tests.unit.transport.pairs import Recorder, framed
from tests.unit.transport.tls.made import self_signed
from tests.unit.transport.tls.world import HOST, client_context, settings

LIMIT_S = 60.0

# Signatures of this kind always have the same length, so nothing of chance is in the length of a handshake.
_KEY = ed25519.Ed25519PrivateKey.generate()
_CERTIFICATE = self_signed(_KEY, hosts=(HOST,))


class Scene:
    """A server and a client on machines of their own."""

    def __init__(self, seed: int, *, timeout_s: float = 10.0) -> None:
        self.world = World(seed)
        self.network = self.world.network
        self.server_loop, self.client_loop = self.world.new_loop("s", "s"), self.world.new_loop("c", "c")
        for host in ("s", "c"):
            self.network.host_up(host)
        self.outcomes: list[TlsFailure | None] = []
        self.streams: list[Recorder] = []
        key = _KEY.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
        read = settings(keystore_key=key, keystore_certificate_chain=_CERTIFICATE)
        context = listening_context(read, load_key_store(read.key_store), None)
        told = lambda _stream, outcome: self.outcomes.append(outcome)  # noqa: E731 (a word for a line)
        self.terms = TlsTerms(
            TlsShared(self.server_loop), context, told, server_side=True, handshake_timeout_s=timeout_s
        )
        self.dialling = TlsTerms(
            TlsShared(self.client_loop),
            client_context(truststore_certificates=_CERTIFICATE),
            told,
            server_side=False,
            handshake_timeout_s=timeout_s,
        )
        self.do(self.server_loop, SimNet(self.network, self.server_loop, "s").listen("s", 9, self._accept))

    def _accept(self) -> TlsStream:
        return TlsStream(self.terms, self._make)

    def _make(self) -> Recorder:
        stream = Recorder(self.server_loop, Intake(self.server_loop), 8 << 20)

        def answer(stream: Recorder, frame: bytearray) -> bool:
            stream.send([framed(bytes(frame))])
            return True

        stream.finishes = answer
        self.streams.append(stream)
        return stream

    def run(self, until: Any) -> bool:
        return self.world.scheduler.run(until, deadline=self.world.scheduler.now + LIMIT_S)

    def do(self, loop: Any, work: Any) -> Any:
        task = loop.create_task(work)
        assert self.run(task.done), "it ends"
        return task.result()

    def dial(self) -> Recorder:
        client = Recorder(self.client_loop, Intake(self.client_loop), 8 << 20)
        self.do(self.client_loop, dial_tls(self.dialling, lambda: client, "s", 9, called=HOST))
        return client


def story(seed: int) -> tuple[list[int], float, int]:
    """Sizes of what came back, when, and how much was delivered."""
    scene = Scene(seed)
    scene.network.split_rate, scene.network.jitter_s = 0.5, 0.05
    client = scene.dial()
    draw = random.Random(seed)
    bodies = [draw.randbytes(draw.randrange(300_000)) for _ in range(8)]
    for body in bodies:
        client.send([framed(body)])
    assert scene.run(lambda: len(client.frames) == len(bodies))
    assert [bytes(frame) for frame in client.frames] == bodies
    return [len(frame) for frame in client.frames], scene.world.scheduler.now, scene.network.delivered


@pytest.mark.parametrize("seed", range(3))
def test_frames_arrive_whole_whatever_the_network_does_to_the_pieces(seed: int) -> None:
    assert story(seed) == story(seed)


def test_a_partition_in_the_middle_of_a_handshake_ends_when_its_time_is_up() -> None:
    scene = Scene(1, timeout_s=3.0)
    client = Recorder(scene.client_loop, Intake(scene.client_loop), 8 << 20)
    task = scene.client_loop.create_task(dial_tls(scene.dialling, lambda: client, "s", 9, called=HOST))
    assert scene.run(lambda: scene.network.delivered >= 1)
    scene.network.block("s", "c")
    assert scene.run(task.done)
    failure = task.exception()
    assert isinstance(failure, TlsFailure)
    assert failure.kind is Kind.TIMED_OUT


def test_a_lost_connection_is_lost_on_both_ends() -> None:
    scene = Scene(2)
    client = scene.dial()
    assert scene.run(lambda: bool(scene.streams))
    scene.network.reset(scene.network.open_ends()[0])
    assert scene.run(lambda: client.gone and scene.streams[0].gone)
