"""Connections on one machine, with and without pacing."""

from __future__ import annotations

import asyncio
import socket

import pytest

from penstock.transport import pacing
from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet
from tests.patience import until
from tests.unit.transport.pairs import Recorder, on_loop


def algorithm(stream: Recorder) -> bytes:
    assert stream.transport is not None
    plug = stream.transport.get_extra_info("socket")
    name: bytes = plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0")


async def accepted_algorithm() -> bytes:
    """What an accepted connection over the loopback uses."""
    loop = asyncio.get_running_loop()
    made: list[Recorder] = []

    def accept() -> Recorder:
        made.append(Recorder(loop, Intake(loop), 100))
        return made[-1]

    net = AsyncioNet(loop)
    listening = await net.listen("127.0.0.1", 0, accept)
    link = await net.dial("127.0.0.1", listening.port, 1_000)
    await until(lambda: made and made[0].transport is not None)
    try:
        return algorithm(made[0])
    finally:
        listening.close()
        link.abort()
        await until(lambda: made[0].gone)


def systems_choice() -> bytes:
    with socket.socket() as plain:
        return plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@on_loop
async def test_an_algorithm_that_paces_is_changed_on_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever this machine uses counts as pacing here, so that the test holds where there is no BBR.
    monkeypatch.setattr(pacing, "PACING", (systems_choice(),))
    assert await accepted_algorithm() == b"reno"


@on_loop
async def test_an_algorithm_that_does_not_pace_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "PACING", (b"none has this name",))
    assert await accepted_algorithm() == systems_choice()


@on_loop
async def test_a_refusal_of_the_system_leaves_the_connection_standing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "PACING", (systems_choice(),))
    monkeypatch.setattr(pacing, "UNPACED", b"no such thing")
    assert await accepted_algorithm() == systems_choice()


NOBODY = ("0.0.0.0", 9092)


@pytest.mark.parametrize(
    ("peer", "mine", "here"),
    [
        (("127.0.0.1", 4711), NOBODY, True),
        (("127.8.9.1", 4711), NOBODY, True),
        (("::1", 4711, 0, 0), NOBODY, True),
        (("::ffff:127.0.0.1", 4711, 0, 0), NOBODY, True),
        (("10.1.27.127", 4711), ("10.1.27.127", 9092), True),
        (("10.1.27.127", 4711), ("10.1.27.12", 9092), False),
        (("::ffff:10.0.0.1", 4711, 0, 0), NOBODY, False),
        (("fe80::1", 4711, 0, 0), ("fe80::2", 9092, 0, 0), False),
        ("/run/some.sock", "/run/some.sock", False),
        (("10.0.0.1", 4711), None, False),
        ((), (), False),
        (None, None, False),
    ],
)
def test_who_is_on_this_machine(peer: object, mine: object, here: bool) -> None:
    assert pacing.is_here(peer, mine) is here
