"""Listeners from settings."""

from __future__ import annotations

import asyncio
import socket

import pytest

from penstock.server.reception.listener import Listeners
from penstock.transport.net import AsyncioNet
from tests.unit.server.served import on_loop, serving, settings_with


@on_loop
async def test_ports_0_are_advertised_as_the_bound_ones() -> None:
    async with serving(listeners="PLAINTEXT://:0,CONTROLLER://127.0.0.1:0") as world:
        (told,) = world.listeners.advertised("node.example")
        assert (told.name, told.host, told.port) == ("PLAINTEXT", "node.example", world.port)
        names = [(listener.info.name, listener.info.port > 0) for listener in world.listeners]
        assert names == [("PLAINTEXT", True), ("CONTROLLER", True)]


@on_loop
async def test_what_is_advertised_wins_over_what_is_bound() -> None:
    async with serving(advertised_listeners="PLAINTEXT://public.example:19092") as world:
        assert [str(told) for told in world.listeners.advertised("x")] == ["PLAINTEXT://public.example:19092"]


@on_loop
async def test_when_one_address_is_taken_none_stays_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as spare:
        free, busy = spare.getsockname()[1], taken.getsockname()[1]
        spare.close()
        settings = settings_with(listeners=f"PLAINTEXT://127.0.0.1:{free},CONTROLLER://127.0.0.1:{busy}")
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{busy}"):
            await Listeners(settings).open(AsyncioNet(asyncio.get_running_loop()))
    socket.create_server(("127.0.0.1", free)).close()
