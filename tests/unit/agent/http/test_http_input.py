"""Events over HTTP, as an input."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.agent.inputs.http.kind import make, read
from penstock.agent.portion import TRUNCATED
from tests.patience import until, within
from tests.unit.agent.listening.channels import (
    DEADLINE_S,
    HandChannel,
    environment,
    on_loop,
    port_of,
    read_table,
    running,
)

JSON = "application/json"


def settings(text: str = "") -> Any:
    found, mistakes = read_table(f'listen = "127.0.0.1:0"\n{text}', read)
    assert not mistakes
    return found


async def send(
    made: Any, body: bytes = b"", kind: str = JSON, *, method: str = "POST", path: str = "/", **headers: str
) -> tuple[int, Mapping[str, str], Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(made))
    given = {"host": "x", "content-type": kind, "content-length": str(len(body)), "connection": "close", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value), "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    async with asyncio.timeout(within(DEADLINE_S)):
        answer = await reader.read()
    writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in rest), msgspec.json.decode(content)


@on_loop
async def test_events_are_answered_when_they_are_acknowledged() -> None:
    channel = HandChannel(acknowledging=False)
    made = make(settings(), channel, environment())
    async with running(made):
        answer = asyncio.create_task(send(made, b'[{"a": 1}, {"b": 2}]'))
        await until(lambda: channel.dones)
        assert not answer.done()
        assert made.held_bytes == 0, "the portion is charged for them now"
        channel.acknowledge()
        status, _, body = await answer
        assert (status, body) == (200, {"accepted": 2})
    assert channel.fields == [{"a": 1}, {"b": 2}]
    assert (made.status().events, channel.portions[0].origin.peer) == (2, "127.0.0.1")


@on_loop
async def test_each_format_by_its_content_type() -> None:
    channel = HandChannel()
    made = make(settings('line_bytes_max = "1 KB"'), channel, environment())
    async with running(made):
        assert (await send(made, b'{"a": 1}\n{"b": 2}\n', "application/x-ndjson"))[2] == {"accepted": 2}
        assert (await send(made, b"one\ntwo\n" + b"x" * 2_000, "text/plain"))[2] == {"accepted": 3}
        assert (await send(made, b"\x00raw\n", "application/octet-stream"))[2] == {"accepted": 1}
        assert (await send(made, b"raw", ""))[2] == {"accepted": 1}
        assert (await send(made, b"[]"))[2] == {"accepted": 0}
    assert channel.values[2:] == [b"one", b"two", b"x" * 1_024, b"\x00raw\n", b"raw"]
    assert channel.marks[4] == TRUNCATED


@on_loop
async def test_a_large_body_is_read_beside_the_loop() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment())
    lines = [b'{"n": %d, "pad": "%s"}' % (number, b"x" * 100) for number in range(5_000)]
    async with running(made):
        assert (await send(made, b"\n".join(lines), "application/x-ndjson"))[2] == {"accepted": 5_000}
    assert channel.values == lines


class OneByOne(HandChannel):
    """Has room for one portion; the next has to wait until it is opened again."""

    def offer(self, portion: Any, done: Any) -> bool:
        taken = super().offer(portion, done)
        self.close()
        return taken


@on_loop
async def test_a_request_for_which_one_portion_is_too_small_is_divided() -> None:
    channel = OneByOne(acknowledging=False)
    made = make(settings('answer_within = "20s"'), channel, environment(memory_bytes=8 << 20))
    lines = [b'{"n": %d}' % number for number in range(10_000)]
    async with running(made):
        answer = asyncio.create_task(send(made, b"\n".join(lines), "application/x-ndjson"))
        await until(lambda: len(channel.portions) == 1)
        channel.open()
        await until(lambda: len(channel.values) == len(lines))
        assert len(channel.portions) > 5
        while channel.dones:
            assert not answer.done()
            channel.dones.pop()()
            await asyncio.sleep(0)
        assert (await answer)[::2] == (200, {"accepted": 10_000})
    assert channel.values == lines
    assert made.status().events == 10_000


@on_loop
async def test_who_finds_room_for_a_part_only_is_told_to_send_again() -> None:
    channel = OneByOne()
    made = make(settings('answer_within = "100ms"'), channel, environment(memory_bytes=8 << 20))
    async with running(made):
        status, _, body = await send(made, b'{"n": 1}\n' * 10_000, "application/x-ndjson")
        assert (status, len(channel.portions)) == (503, 1)
        assert "send it again" in body["error"]


@on_loop
async def test_taken_is_answered_at_once() -> None:
    channel = HandChannel(acknowledging=False)
    made = make(settings('answer_when = "taken"'), channel, environment())
    async with running(made):
        assert (await send(made, b'{"a": 1}'))[::2] == (202, {"accepted": 1})


@on_loop
async def test_a_broken_line_refuses_the_whole_request() -> None:
    channel = HandChannel()
    made = make(settings(), channel, environment())
    async with running(made):
        status, _, body = await send(made, b'{"a": 1}\n{"b": 2}\n{"c"\n', "application/x-ndjson")
        assert status == 400
        assert body["error"].startswith("line 3, column ")
        assert channel.portions == []
        assert made.status().malformed == 1


@on_loop
async def test_without_room_senders_are_told_when_to_come_again() -> None:
    channel = HandChannel(open=False)
    made = make(settings('retry_after = "1500ms"'), channel, environment())
    async with running(made):
        status, headers, _ = await send(made, b'{"a": 1}')
        assert (status, headers["retry-after"]) == (429, "2")
        assert made.status().refused == 1
        assert (await send(made, method="GET", path="/health"))[::2] == (503, {"status": "no room"})
        channel.open()
        assert (await send(made, b'{"a": 1}'))[0] == 200
    assert len(channel.portions) == 1


@on_loop
async def test_who_is_not_acknowledged_in_time_sends_again() -> None:
    channel = HandChannel(acknowledging=False)
    made = make(settings('answer_within = "100ms"'), channel, environment())
    async with running(made):
        assert (await send(made, b'{"a": 1}'))[0] == 503
        channel.acknowledge()


@on_loop
async def test_a_stop_answers_503_to_the_new_and_to_whoever_is_not_acknowledged() -> None:
    channel = HandChannel(acknowledging=False)
    made = make(settings(), channel, environment())
    async with running(made) as task:
        early = asyncio.create_task(send(made, b'{"a": 1}'))
        late = asyncio.create_task(send(made, b'{"b": 1}'))
        await until(lambda: len(channel.dones) == 2)
        await made.stop()
        async with asyncio.timeout(within(DEADLINE_S)):
            await task
        assert (await send(made, b'{"c": 1}'))[0] == 503
        assert (await send(made, method="GET", path="/health"))[0] == 503
        channel.dones.pop(0)()
        await until(lambda: early.done() or late.done())
        await made.close()
        answers = sorted([(await early)[0], (await late)[0]])
        assert answers == [200, 503]
    assert len(channel.portions) == 2


@on_loop
async def test_who_may_send_what_where() -> None:
    channel = HandChannel()
    made = make(settings('path = "/in"\ntoken = "geheim"\nbody_bytes_max = "1 KB"'), channel, environment())
    secret = {"authorization": "Bearer geheim"}
    async with running(made):
        assert (await send(made, b"{}", path="/in"))[0] == 401
        assert (await send(made, b"{}", path="/in", authorization="Bearer gehei"))[0] == 401
        assert (await send(made, b"{}", path="/in", authorization="Basic geheim"))[0] == 401
        assert (await send(made, b"{}", path="/in", **secret))[0] == 200
        assert (await send(made, b"{}", path="/in/below/it", **secret))[0] == 200
        assert (await send(made, b"{}", path="/inside", **secret))[0] == 404
        assert (await send(made, b"", path="/in", method="GET", **secret))[0] == 405
        assert (await send(made, b"a=1", "application/x-www-form-urlencoded", path="/in", **secret))[0] == 415
        assert (await send(made, b" " * 2_000, path="/in", **secret))[0] == 413
        assert (await send(made, method="GET", path="/health"))[::2] == (200, {"status": "ok"})
    assert len(channel.portions) == 2


@on_loop
async def test_an_address_in_use_is_told() -> None:
    made = make(settings(), HandChannel(), environment())
    async with running(made):
        taken, _ = read_table(f'listen = "127.0.0.1:{port_of(made)}"', read)
        with pytest.raises(OSError, match="another process listens there"):
            await make(taken, HandChannel(), environment()).run()


def test_what_is_wrong_with_the_settings(tmp_path: Path) -> None:
    def wrong(text: str) -> str:
        return "\n".join(read_table(text, read, tmp_path)[1])

    assert wrong("") == ""
    assert "must begin with a slash" in wrong('path = "in"')
    assert "https:// needs tls" in wrong('listen = "https://127.0.0.1:1"')
    assert "did you mean 'acknowledged'" in wrong('answer_when = "acknowleged"')
    assert "means nothing" in wrong('tokn = "x"')
