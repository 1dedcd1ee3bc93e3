"""Listening and dialling."""

from __future__ import annotations

import asyncio
import socket

import pytest

from penstock.transport.dial import Unreachable
from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet, plain_host
from tests.patience import until, within
from tests.unit.transport.pairs import Recorder, on_loop


def net() -> AsyncioNet:
    return AsyncioNet(asyncio.get_running_loop(), send_buffer_bytes=65_536, receive_buffer_bytes=32_768)


@on_loop
async def test_port_zero_becomes_a_real_one_and_sizes_reach_the_sockets() -> None:
    loop = asyncio.get_running_loop()
    made: list[Recorder] = []

    def accept() -> Recorder:
        made.append(Recorder(loop, Intake(loop), 100))
        return made[-1]

    listening = await net().listen("127.0.0.1", 0, accept)
    assert listening.port > 0
    link = await net().dial("127.0.0.1", listening.port, 1_000)
    await until(lambda: made and made[0].transport is not None)
    assert made[0].transport is not None
    accepted = made[0].transport.get_extra_info("socket")
    # Linux doubles what is asked for, for its own bookkeeping.
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 65_536
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 32_768
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    listening.close()
    link.abort()
    await until(lambda: made[0].gone)


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
@on_loop
async def test_a_wildcard_is_reached_through_the_loopback(host: str) -> None:
    loop = asyncio.get_running_loop()
    made: list[Recorder] = []

    def accept() -> Recorder:
        made.append(Recorder(loop, Intake(loop), 100))
        return made[-1]

    listening = await net().listen(host, 0, accept)
    link = await net().dial("127.0.0.1", listening.port, 1_000)
    await until(lambda: made and made[0].transport is not None)
    assert made[0].transport is not None
    assert plain_host(made[0].transport.get_extra_info("peername")[0]) == "127.0.0.1"
    listening.close()
    link.abort()
    await until(lambda: made[0].gone)


def test_what_was_accepted_in_the_turn_of_closing_is_given_to_its_protocol() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        made: list[Recorder] = []

        def accept() -> Recorder:
            made.append(Recorder(loop, Intake(loop), 100))
            return made[-1]

        listening = await net().listen("127.0.0.1", 0, accept)
        before = asyncio.all_tasks()
        with socket.create_connection(("127.0.0.1", listening.port)):
            async with asyncio.timeout(within(10)):
                while asyncio.all_tasks() == before:  # asyncio makes the transport in a task, one turn later
                    await asyncio.sleep(0)
            assert not made
            listening.close()
            await until(lambda: made and made[0].transport is not None)
            made[0].abort()
            await until(lambda: made[0].gone)
        with pytest.raises(Unreachable):
            await net().dial("127.0.0.1", listening.port, 1_000)

    asyncio.run(main())  # its own loop: others accept in another way


@on_loop
async def test_an_address_in_use_is_named_in_the_error() -> None:
    loop = asyncio.get_running_loop()
    listening = await net().listen("127.0.0.1", 0, lambda: Recorder(loop, Intake(loop), 100))
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{listening.port}: Address already in use"):
        await net().listen("127.0.0.1", listening.port, lambda: Recorder(loop, Intake(loop), 100))
    listening.close()


@on_loop
async def test_a_refused_connection_names_host_port_and_cause() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port}: .*refused") as caught:
        await net().dial("127.0.0.1", port, 1_000)
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", port)


@on_loop
async def test_a_name_that_does_not_exist_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"no-such-host\.invalid:9092"):
        await net().dial("no-such-host.invalid", 9092, 5_000)


def test_an_ipv4_peer_of_a_socket_of_both_kinds_is_named_as_ipv4() -> None:
    assert plain_host("::ffff:10.1.2.3") == "10.1.2.3"
    assert plain_host("::1") == "::1"
    assert plain_host("10.1.2.3") == "10.1.2.3"
