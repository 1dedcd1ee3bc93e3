"""Frames in and parts out over real loopback sockets."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import AsyncExitStack

import pytest

from penstock.protocol.wire import Spans
from penstock.transport.intake import SCRATCH_BYTES, Intake
from penstock.transport.outbox import CHUNK_BYTES
from penstock.transport.stream import IN_FLIGHT_MAX
from tests.patience import until, within
from tests.unit.transport.pairs import Pair, Recorder, framed, on_loop, paired


class FakeSpan:
    """A span of a pretended file; counts how much was read of it."""

    def __init__(self, size: int, fails_at: int | None = None) -> None:
        self.size = size
        self.fails_at = fails_at
        self.read_bytes = 0

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        assert size is not None
        if self.fails_at is not None and at + size > self.fails_at:
            raise OSError(5, "the disk is broken")
        self.read_bytes += size
        return bytes(size)


@on_loop
async def test_frames_arrive_whole_whatever_way_the_bytes_are_cut() -> None:
    chance = random.Random(7)
    bodies = [chance.randbytes(chance.choice([0, 1, 3, 40, 5_000, 300_000])) for _ in range(60)]
    data = b"".join(map(framed, bodies))
    async with paired() as pair:
        at = 0
        while at < len(data):
            step = chance.choice([1, 2, 3, 5, 700, 70_000, 400_000])
            await pair.send(data[at : at + step])
            at += step
            if chance.random() < 0.2:
                await asyncio.sleep(0)
        await until(lambda: len(pair.stream.frames) == len(bodies))
        assert [bytes(frame) for frame in pair.stream.frames] == bodies
        assert pair.stream.intake.held_bytes == 0


@on_loop
async def test_a_frame_is_handed_on_in_a_buffer_of_its_own() -> None:
    async with paired() as pair:
        await pair.send(framed(b"first") + framed(b"second"))
        await until(lambda: len(pair.stream.frames) == 2)
        pair.stream.frames[1][:] = b"______"
        await pair.send(framed(b"third"))
        await until(lambda: len(pair.stream.frames) == 3)
        assert pair.stream.frames == [b"first", b"______", b"third"]


@pytest.mark.parametrize(
    ("bytes_sent", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (bytes.fromhex("1603010200010001fc0303"), "TLS"),
        (struct.pack(">i", -5) + b"rest", "announces -5 bytes"),
        (struct.pack(">i", (1 << 20) + 1), "socket.request.max.bytes"),
    ],
)
@on_loop
async def test_what_is_no_frame_closes_the_connection_with_a_reason(bytes_sent: bytes, words: str) -> None:
    async with paired() as pair:
        await pair.send(bytes_sent)
        assert await pair.reader.read() == b""
        assert len(pair.stream.refusals) == 1
        assert words in pair.stream.refusals[0]


@on_loop
async def test_frames_before_a_bad_one_are_still_answered() -> None:
    def answer(stream: Recorder, frame: bytearray) -> bool:
        stream.send([framed(bytes(frame))])
        return True

    async with paired() as pair:
        pair.stream.finishes = answer
        await pair.send(framed(b"good") + struct.pack(">i", -1))
        assert await pair.reader.read() == framed(b"good")


@on_loop
async def test_an_announced_size_alone_costs_no_more_than_one_scratch() -> None:
    async with paired(frame_bytes_max=100 << 20) as pair:
        await pair.send(struct.pack(">i", 100 << 20) + b"only a little")
        await until(lambda: pair.stream._own is not None)
        assert pair.stream._own is not None
        assert len(pair.stream._own) <= SCRATCH_BYTES
        await pair.send(bytes(600_000))
        await until(lambda: pair.stream._filled > 600_000)
        assert len(pair.stream._own) <= 4 * 700_000


@on_loop
async def test_a_peer_that_sent_a_large_frame_whole_gets_room_for_the_next_at_once() -> None:
    async with paired(frame_bytes_max=100 << 20) as pair:
        await pair.send(framed(bytes(2 << 20)))
        await until(lambda: pair.stream.frames)
        await pair.send(struct.pack(">i", 50 << 20) + b"only a little")
        await until(lambda: pair.stream._own is not None)
        assert pair.stream._own is not None
        assert len(pair.stream._own) == 2 << 20


@on_loop
async def test_memory_of_an_incomplete_frame_is_given_back_when_the_peer_goes() -> None:
    async with paired(budget_bytes=1 << 20) as pair:
        await pair.send(struct.pack(">i", 500_000) + bytes(1_000))
        await until(lambda: pair.stream.intake.held_bytes == 500_000)
        pair.writer.transport.abort()
        await until(lambda: pair.stream.gone)
        assert pair.stream.intake.held_bytes == 0


@on_loop
async def test_reading_stops_at_the_limit_of_requests_in_flight_and_goes_on_below_it() -> None:
    async with paired() as pair:
        stream = pair.stream
        stream.finishes = lambda _stream, _frame: False
        await pair.send(b"".join(framed(str(n).encode()) for n in range(100)))
        await until(lambda: len(stream.frames) == IN_FLIGHT_MAX)
        await asyncio.sleep(0)
        assert len(stream.frames) == IN_FLIGHT_MAX
        assert not stream._reading
        while len(stream.frames) < 100 or stream.in_flight:
            assert stream.in_flight <= IN_FLIGHT_MAX
            stream.done(len(stream.frames[len(stream.frames) - stream.in_flight]))
            await asyncio.sleep(0)
        assert [int(frame) for frame in stream.frames] == list(range(100))
        assert stream._reading
        assert stream.intake.held_bytes == 0


@on_loop
async def test_reading_stops_at_the_limit_of_bytes_in_flight() -> None:
    async with paired() as pair:
        stream = pair.stream
        stream.finishes = lambda _stream, _frame: False
        sending = asyncio.ensure_future(pair.send(framed(bytes(1_000_000)) * 12))
        await until(lambda: stream.saturated)
        assert len(stream.frames) == 5
        assert not stream._reading
        done = 0
        while len(stream.frames) < 12:
            if done < len(stream.frames):
                stream.done(1_000_000)
                done += 1
            await asyncio.sleep(0.001)
        await sending


@on_loop
async def test_ten_thousand_tiny_frames_leave_turns_for_others() -> None:
    async with paired() as pair:
        turns = 0
        ticking = True

        def tick() -> None:
            nonlocal turns
            turns += 1
            if ticking:
                asyncio.get_running_loop().call_soon(tick)

        tick()
        sending = asyncio.ensure_future(pair.send(framed(b"tiny") * 10_000))
        await until(lambda: len(pair.stream.frames) == 10_000)
        ticking = False
        await sending
        assert turns > 100


@on_loop
async def test_the_budget_holds_back_new_frames_until_old_ones_are_done() -> None:
    loop = asyncio.get_running_loop()
    intake = Intake(loop, budget_bytes=600_000)
    async with paired(intake=intake) as first, paired(intake=intake) as second:
        first.stream.finishes = second.stream.finishes = lambda _stream, _frame: False
        sending = [asyncio.ensure_future(pair.send(framed(bytes(700_000)))) for pair in (first, second)]
        await until(lambda: first.stream.frames or second.stream.frames)
        served = first if first.stream.frames else second
        other = second if served is first else first
        await until(lambda: other.stream in intake._waiting)
        assert intake.held_bytes < 2 * 700_000
        assert not other.stream.frames
        served.stream.done(700_000)
        await until(lambda: other.stream.frames)
        other.stream.done(700_000)
        await asyncio.gather(*sending)
        assert intake.held_bytes == 0


@on_loop
async def test_beginnings_of_frames_never_hold_the_whole_budget_against_each_other() -> None:
    """Each of four connections has read more than the budget before the first of them is granted its frame."""
    intake = Intake(asyncio.get_running_loop(), budget_bytes=100_000)
    async with AsyncExitStack() as stack:
        everybody = [await stack.enter_async_context(paired(intake=intake)) for _ in range(4)]
        sending = [asyncio.ensure_future(pair.send(framed(bytes(200_000)) * 3)) for pair in everybody]
        await until(lambda: all(len(pair.stream.frames) == 3 for pair in everybody))
        await asyncio.gather(*sending)
        assert intake.held_bytes == 0


@on_loop
async def test_who_waits_is_granted_its_frame_when_the_one_who_was_granted_leaves() -> None:
    intake = Intake(asyncio.get_running_loop(), budget_bytes=100_000)
    async with paired(intake=intake) as waiting:
        async with paired(intake=intake) as granted:
            await granted.send(framed(bytes(200_000))[:1_000])
            await until(lambda: intake.exhausted)
            sending = asyncio.ensure_future(waiting.send(framed(bytes(200_000))))
            await until(lambda: waiting.stream in intake._waiting)
        await until(lambda: len(waiting.stream.frames) == 1)
        await sending
        assert intake.held_bytes == 0


@on_loop
async def test_a_connection_that_leaves_while_it_waits_for_budget_is_forgotten() -> None:
    intake = Intake(asyncio.get_running_loop(), budget_bytes=100)
    async with paired(intake=intake) as first:
        first.stream.finishes = lambda _stream, _frame: False
        await first.send(framed(bytes(200)))
        await until(lambda: first.stream.frames)
        async with paired(intake=intake) as second:
            await second.send(framed(bytes(300_000))[:1_000])
            await until(lambda: second.stream in intake._waiting)
        assert second.stream not in intake._waiting
        first.stream.done(200)
        assert intake.held_bytes == 0


async def _received(pair: Pair, size: int) -> bytes:
    async with asyncio.timeout(within(10)):
        return await pair.reader.readexactly(size)


@on_loop
async def test_parts_leave_in_order_whatever_they_are() -> None:
    class Text:
        def __init__(self, data: bytes) -> None:
            self.data = data
            self.size = len(data)

        def read(self, at: int = 0, size: int | None = None) -> bytes:
            return self.data[at : None if size is None else at + size]

    big = random.Random(1).randbytes(700_000)
    parts = [b"head", Text(big), Spans([Text(b"a"), b"b", Spans([Text(b"c")])]), bytearray(b"d"), memoryview(b"e"), b""]
    async with paired() as pair:
        pair.stream.send(parts)
        pair.stream.send([b"next"])
        assert await _received(pair, 700_013) == b"head" + big + b"abcde" + b"next"
        assert pair.stream.bytes_out == 700_013
        await until(lambda: not pair.stream.backed_up)
        assert pair.stream.drained_count == 1


@on_loop
async def test_a_slow_reader_of_a_huge_reply_costs_a_few_chunks() -> None:
    async with paired(reader_limit=1024) as pair:
        span = FakeSpan(50 << 20)
        pair.stream.send([b"head", span])
        await until(lambda: pair.stream._full)
        for _ in range(20):
            await asyncio.sleep(0)
        assert pair.stream.transport is not None
        assert pair.stream.transport.get_write_buffer_size() <= 2 * CHUNK_BYTES
        # What was read of the span is in the buffers of both sockets or in the transport.
        assert span.read_bytes < 16 << 20
        got = 0
        while got < span.size + 4:
            got += len(await pair.reader.read(1 << 20))
        assert got == span.size + 4


@on_loop
async def test_a_span_that_cannot_be_read_cuts_the_connection() -> None:
    async with paired() as pair:
        pair.stream.send([b"head", FakeSpan(4 << 20, fails_at=1 << 20)])
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await pair.reader.readexactly(4 << 20)
        assert isinstance(pair.stream.failures[0], OSError)


@on_loop
async def test_closing_lets_what_was_sent_leave_first() -> None:
    async with paired() as pair:
        pair.stream.send([FakeSpan(5 << 20)])
        pair.stream.close()
        assert len(await pair.reader.read(-1)) == 5 << 20


@on_loop
async def test_a_peer_that_closed_its_half_still_gets_its_replies() -> None:
    async with paired() as pair:
        pair.stream.finishes = lambda _stream, _frame: False
        await pair.send(framed(b"ask"))
        pair.writer.write_eof()
        await until(lambda: pair.stream._eof)
        pair.stream.send([framed(b"answer")])
        pair.stream.done(3)
        assert await pair.reader.read() == framed(b"answer")


@on_loop
async def test_a_peer_that_closed_its_half_and_asked_nothing_is_closed_at_once() -> None:
    async with paired() as pair:
        pair.writer.write_eof()
        assert await pair.reader.read() == b""


@on_loop
async def test_a_reset_in_the_middle_of_a_frame_ends_that_connection_only() -> None:
    intake = Intake(asyncio.get_running_loop())
    async with paired(intake=intake) as broken, paired(intake=intake) as healthy:
        await broken.send(framed(bytes(1_000))[:500])
        await until(lambda: broken.stream._own is not None)
        # A linger of zero makes the close a reset.
        peer = broken.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        broken.writer.transport.abort()
        await until(lambda: broken.stream.gone)
        await healthy.send(framed(b"still here"))
        await until(lambda: healthy.stream.frames == [b"still here"])


@on_loop
async def test_sending_after_the_end_does_nothing() -> None:
    async with paired() as pair:
        pair.stream.abort()
        pair.stream.send([b"into the void"])
        await until(lambda: pair.stream.gone)
        pair.stream.send([b"into the void"])
        pair.stream.done(3)
        pair.stream.close()
        assert pair.stream.bytes_out == 0
