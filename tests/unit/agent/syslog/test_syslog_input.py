"""Syslog over UDP and TCP, as an input."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

from penstock.agent.inputs.syslog.kind import make, read
from penstock.agent.portion import MALFORMED, TRUNCATED
from tests.patience import until
from tests.unit.agent.listening.channels import HandChannel, environment, on_loop, port_of, read_table, running

NOW_MS = 1_794_830_400_000


def settings(text: str = "") -> Any:
    found, mistakes = read_table(f'listen = ["udp://127.0.0.1:0", "tcp://127.0.0.1:0"]\ntimezone = "UTC"\n{text}', read)
    assert not mistakes
    return found


def send(made: Any, *messages: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for message in messages:
            sender.sendto(message, ("127.0.0.1", port_of(made, "udp")))


@on_loop
async def test_datagrams_and_streams_become_fields() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment(now_ms=lambda: NOW_MS))
    async with running(made):
        send(made, b"<13>Nov 16 10:00:00 app[1]: hello\n")
        await until(lambda: len(channel.values) == 1)
        _, writer = await asyncio.open_connection("127.0.0.1", port_of(made, "tcp"))
        writer.write(b"45 <34>1 2026-11-16T10:00:00Z web su - - - count<14>Nov 16 10:00:01 web app: line\n")
        await until(lambda: len(channel.values) == 3)
        writer.close()
    assert channel.fields[0] == {
        "facility": "user",
        "severity": "notice",
        "timestamp": "2026-11-16T10:00:00+00:00",
        "host": "127.0.0.1",
        "app": "app",
        "pid": "1",
        "message": "hello",
    }
    assert [fields["message"] for fields in channel.fields] == ["hello", "count", "line"]
    assert channel.portions[0].timestamps_ms == [1_794_823_200_000]
    assert (made.status().events, made.status().malformed) == (3, 0)


@on_loop
async def test_a_flood_of_small_messages_is_taken_in_small_portions_and_in_order() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment())
    async with running(made):
        _, writer = await asyncio.open_connection("127.0.0.1", port_of(made, "tcp"))
        writer.write(b"".join(b"<13>%d\n" % number for number in range(20_000)))
        await until(lambda: len(channel.values) == 20_000)
        writer.close()
    assert [int(fields["message"]) for fields in channel.fields] == list(range(20_000))
    assert max(len(portion.values) for portion in channel.portions) == 1_000


@on_loop
async def test_malformed_ones_go_on_marked_and_counted() -> None:
    channel = HandChannel()
    made = make(settings('keep_raw = true\nmessage_bytes_max = "1 KB"'), channel, environment())
    async with running(made):
        send(made, b"\xff\x00 nonsense")
        await until(lambda: len(channel.values) == 1)
        send(made, b"<13>" + b"x" * 5_000)
        await until(lambda: len(channel.values) == 2)
    assert channel.values[0] == b"\xff\x00 nonsense"
    assert channel.fields[0] == {"message": "\\xff\x00 nonsense", "host": "127.0.0.1", "raw": "\\xff\x00 nonsense"}
    assert channel.marks == [MALFORMED, TRUNCATED]
    assert (len(channel.values[1]), made.status().malformed, made.status().truncated) == (1_024, 1, 1)


@on_loop
async def test_a_clock_that_is_ahead_does_not_give_records_of_the_future() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment(now_ms=lambda: NOW_MS))
    async with running(made):
        send(made, b"<34>1 2036-11-16T10:00:00Z web su - - - x", b"<34>1 1926-11-16T10:00:00Z web su - - - x")
        await until(lambda: len(channel.values) == 2)
    assert [time_ms for portion in channel.portions for time_ms in portion.timestamps_ms or []] == [NOW_MS, NOW_MS]
    assert channel.fields[0]["timestamp"] == "2036-11-16T10:00:00Z"


@on_loop
async def test_datagrams_of_one_moment_travel_together() -> None:
    channel = HandChannel(open=False)
    made = make(settings(), channel, environment())
    async with running(made):
        send(made, b"<13>first")
        await until(lambda: made.held_bytes > 0)
        send(made, *(b"<13>number %d" % number for number in range(400)))
        channel.open()
        await until(lambda: len(channel.values) == 401)
        assert len(channel.portions) == 2


@on_loop
async def test_without_room_the_kernel_holds_what_it_can_and_the_rest_is_counted_and_told(caplog: Any) -> None:
    channel = HandChannel(open=False)
    made = make(settings('receive_buffer = "64 KB"'), channel, environment())
    sent = 2_000
    async with running(made):
        send(made, *(b"<13>%05d" % number + b"x" * 500 for number in range(sent)))
        await until(lambda: made.status().dropped > 0 and any("were dropped" in line for line in caplog.messages))
        channel.open()
        await until(lambda: len(channel.values) + made.status().dropped == sent)
    assert len([line for line in caplog.messages if "were dropped" in line]) == 1, "told once, not for each"
    assert 0 < len(channel.values) < sent


@on_loop
async def test_a_stop_takes_what_the_kernel_holds() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment())
    async with running(made):
        send(made, *(b"<13>number %d" % number for number in range(1_500)))
        await made.stop()
        assert len(channel.values) == 1_500


def test_what_is_wrong_with_the_settings(tmp_path: Path) -> None:
    def wrong(text: str) -> str:
        return "\n".join(read_table(f'listen = "udp://0.0.0.0:514"\n{text}', read, tmp_path)[1])

    assert wrong('timezone = "Europe/Berlin"') == ""
    assert wrong('timezone = "+05:30"') == ""
    assert "timezone = 'Nowhere/Else' is not known" in wrong('timezone = "Nowhere/Else"')
    assert "did you mean 'rfc5424'" in wrong('format = "rfc5242"')
    assert "out of bounds" in wrong("message_bytes_max = 3")
