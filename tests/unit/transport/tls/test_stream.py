"""TLS between a socket and a FrameStream, on every loop, with OpenSSL by other hands on the far side."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.transport.dial import Link
from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet
from penstock.transport.stream import FrameStream
from penstock.transport.tls import stream as stream_module
from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.layer import TlsLayer
from penstock.transport.tls.stream import TlsShared, TlsStream, TlsTerms, dial_tls
from tests.patience import until
from tests.unit.transport.pairs import Recorder, framed
from tests.unit.transport.tls.loops import Listener, listening, on_loops
from tests.unit.transport.tls.world import HOST, client_context, leaf, server_context, trusting

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


async def foreign(listener: Listener, context: ssl.SSLContext | None = None) -> tuple[Reader, Writer]:
    """A client that is asyncio's own TLS."""
    return await asyncio.open_connection(
        "127.0.0.1", listener.port, ssl=context or client_context(), server_hostname=HOST, limit=1 << 24
    )


def answering(stream: Recorder, frame: bytearray) -> bool:
    stream.send([framed(bytes(frame))])
    return True


def echo(stream: Recorder) -> None:
    stream.finishes = answering


async def ended(reader: Reader) -> bytes:
    """What comes until the end, however that comes."""
    try:
        return await reader.read()
    except (ConnectionError, ssl.SSLError):
        return b""


# Frames.


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@on_loops
async def test_frames_of_every_size_go_both_ways(version: str) -> None:
    async with listening() as listener:
        listener.prepare = echo
        reader, writer = await foreign(listener, client_context(enabled_protocols=version))
        for size in (0, 1, 300, 16_380, 70_000, 300_000, 3_000_000):
            body = random.Random(size).randbytes(size)
            writer.write(framed(body))
            assert await reader.readexactly(4 + size) == framed(body)
        writer.close()
        await until(lambda: listener.streams[0].gone)
        assert listener.outcomes == [None]


@on_loops
async def test_many_small_frames_in_one_record_are_all_answered_in_order() -> None:
    async with listening() as listener:
        listener.prepare = echo
        reader, writer = await foreign(listener)
        frames = b"".join(framed(struct.pack(">i", number)) for number in range(5_000))
        writer.write(frames)
        assert await reader.readexactly(len(frames)) == frames
        writer.close()


@on_loops
async def test_a_stream_that_pauses_gets_the_rest_when_it_wants_it() -> None:
    async with listening() as listener:
        reader, writer = await foreign(listener)
        held: list[bytearray] = []

        def keep(_stream: Recorder, frame: bytearray) -> bool:
            held.append(frame)
            return False

        listener.prepare = lambda stream: setattr(stream, "finishes", keep)
        await until(lambda: listener.outcomes)
        stream = listener.streams[0]
        stream.finishes = keep
        frames = [bytes([number]) * 10_000 for number in range(60)]
        writer.write(b"".join(map(framed, frames)))
        await until(lambda: len(held) == 16)
        # Nothing more comes while sixteen are in flight, whatever lies in the socket and in OpenSSL.
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(held) == 16
        done = 0
        while len(held) < 60:
            stream.done(len(held[done]))
            done += 1
            wanted = min(60, done + 16)
            await until(lambda wanted=wanted: len(held) >= wanted)
        for frame in held[done:]:
            stream.done(len(frame))
        assert [bytes(frame) for frame in held] == frames
        writer.close()
        await ended(reader)


@on_loops
async def test_a_small_budget_holds_connections_back_and_loses_nothing() -> None:
    async with listening(budget_bytes=1_000_000) as listener:
        listener.prepare = echo
        clients = [await foreign(listener) for _ in range(5)]
        body = random.Random(1).randbytes(700_000)
        for _, writer in clients:
            writer.write(framed(body) * 3)
        for reader, writer in clients:
            assert await reader.readexactly(3 * (4 + len(body))) == framed(body) * 3
            writer.close()


@on_loops
async def test_a_reply_of_spans_leaves_as_the_peer_reads() -> None:
    class Span:
        size = 8 << 20
        reads = 0

        def read(self, at: int = 0, size: int | None = None) -> bytes:
            self.reads += 1
            return b"s" * (self.size if size is None else size)

        def fileno(self) -> int:
            raise AssertionError("a file cannot be handed over where there is TLS")

    async with listening() as listener:
        reader, writer = await foreign(listener)
        await until(lambda: listener.outcomes)
        stream = listener.streams[0]
        plain = Span()
        plain.fileno = lambda: -1  # type: ignore[method-assign]
        stream.send([struct.pack(">i", plain.size), plain])
        assert stream.backed_up
        assert plain.reads < 40
        assert await reader.readexactly(4 + plain.size) == struct.pack(">i", plain.size) + b"s" * plain.size
        await until(lambda: stream.drained_count)
        writer.close()


@on_loops
async def test_a_file_is_not_handed_to_the_socket_past_the_cipher(tmp_path: Any) -> None:
    path = tmp_path / "segment"
    path.write_bytes(random.Random(7).randbytes(1 << 20))

    class FileSpan:
        position, size = 0, 1 << 20

        def __init__(self) -> None:
            self.file = open(path, "rb")  # noqa: SIM115 (closed below)

        def read(self, at: int = 0, size: int | None = None) -> bytes:
            self.file.seek(at)
            return self.file.read(self.size if size is None else size)

        def fileno(self) -> int:
            return self.file.fileno()

    async with listening() as listener:
        reader, writer = await foreign(listener)
        await until(lambda: listener.outcomes)
        span = FileSpan()
        listener.streams[0].send([b"head", span])
        assert await reader.readexactly(4 + span.size) == b"head" + path.read_bytes()
        span.file.close()
        writer.close()


# Whom a stream speaks to.


@on_loops
async def test_a_stream_learns_who_is_there() -> None:
    async with listening(server_context(client_auth="required", **trusting())) as listener:
        _, writer = await foreign(listener, client_context(leaf("bob")))
        await until(lambda: listener.outcomes)
        transport = listener.streams[0].transport
        assert transport is not None
        layer = transport.get_extra_info("tls_layer")
        assert isinstance(layer, TlsLayer)
        assert layer.peer_certificate is not None
        assert transport.get_extra_info("peername")[0] == "127.0.0.1"
        assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()


@on_loops
async def test_a_new_context_is_for_new_connections() -> None:
    async with listening() as listener:
        listener.prepare = echo
        reader, writer = await foreign(listener)
        listener.terms.context = server_context(leaf(by="others"))
        with pytest.raises(ssl.SSLCertVerificationError):
            await foreign(listener)
        others = client_context(truststore_certificates=trusting("others")["truststore_certificates"])
        _, newcomer = await foreign(listener, others)
        writer.write(framed(b"still here"))
        assert await reader.readexactly(14) == framed(b"still here")
        writer.close()
        newcomer.close()


# Our own side of dialling.


def dialling(context: ssl.SSLContext | None = None, timeout_s: float = 10.0) -> TlsTerms:
    def told(_stream: Any, _outcome: Any) -> None:
        raise AssertionError("who dials is told itself")

    shared = TlsShared(asyncio.get_running_loop())
    return TlsTerms(shared, context or client_context(), told, server_side=False, handshake_timeout_s=timeout_s)


async def dialled(listener: Listener, context: ssl.SSLContext | None = None, called: str = HOST) -> Recorder:
    loop = asyncio.get_running_loop()
    stream = Recorder(loop, Intake(loop), 64 << 20)
    await dial_tls(dialling(context), lambda: stream, "127.0.0.1", listener.port, called=called)
    return stream


@on_loops
async def test_our_two_sides_understand_each_other() -> None:
    async with listening() as listener:
        listener.prepare = echo
        stream = await dialled(listener)
        bodies = [random.Random(size).randbytes(size) for size in (1, 300, 200_000, 5_000_000)]
        for body in bodies:
            stream.send([framed(body)])
        await until(lambda: len(stream.frames) == len(bodies))
        assert [bytes(frame) for frame in stream.frames] == bodies
        stream.close()
        await until(lambda: stream.gone and listener.streams[0].gone)


@on_loops
async def test_a_dial_that_is_not_safe_says_why_and_closes() -> None:
    async with listening() as listener:
        with pytest.raises(TlsFailure) as found:
            await dialled(listener, called="other.example")
        assert found.value.kind is Kind.HOST_NAME
        others = client_context(truststore_certificates=trusting("others")["truststore_certificates"])
        with pytest.raises(TlsFailure) as found:
            await dialled(listener, others)
        assert found.value.kind is Kind.UNTRUSTED
        await until(lambda: len(listener.failures) == 2)
        assert [each.kind for each in listener.failures] == [Kind.REFUSED_BY_PEER] * 2


@on_loops
async def test_a_certificate_that_was_missing_is_told_by_the_first_read() -> None:
    """In TLS 1.3 a client is done before the server has looked at what it did not show."""
    async with listening(server_context(client_auth="required", **trusting())) as listener:
        stream: list[FrameStream] = []
        loop = asyncio.get_running_loop()

        class Keeper(Recorder):
            cause: Exception | None = None

            def lost(self, cause: Exception | None) -> None:
                super().lost(cause)
                self.cause = cause

        keeper = Keeper(loop, Intake(loop), 1 << 20)
        await dial_tls(dialling(), lambda: keeper, "127.0.0.1", listener.port, called=HOST)
        await until(lambda: keeper.gone)
        assert isinstance(keeper.cause, TlsFailure)
        assert "certificate required" in keeper.cause.why
        assert [each.kind for each in listener.failures] == [Kind.NO_CERTIFICATE]
        assert not stream


@on_loops
async def test_a_plaintext_listener_is_told_apart() -> None:
    loop = asyncio.get_running_loop()
    plain: list[Recorder] = []

    def accept() -> Recorder:
        plain.append(Recorder(loop, Intake(loop), 100 << 20))
        return plain[-1]

    bound = await AsyncioNet(loop).listen("127.0.0.1", 0, accept)
    stream = Recorder(loop, Intake(loop), 1 << 20)
    with pytest.raises(TlsFailure, match="is this a plaintext listener"):
        await dial_tls(dialling(), lambda: stream, "127.0.0.1", bound.port)
    await until(lambda: plain and plain[0].gone)
    assert plain[0].refusals == ["this looks like a TLS handshake on a plaintext listener"]
    bound.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Kind.FOREIGN),
        (b"SSH-2.0-x\r\n", Kind.FOREIGN),
        (bytes(20), Kind.PLAINTEXT),
    ],
)
@on_loops
async def test_somebody_else_who_answers_is_told_apart(answer: bytes, kind: Kind) -> None:
    async with answering_with(answer) as port:
        loop = asyncio.get_running_loop()
        with pytest.raises(TlsFailure) as found:
            await dial_tls(dialling(), lambda: Recorder(loop, Intake(loop), 1 << 20), "127.0.0.1", port)
        assert found.value.kind is kind


class GivenUp:
    """A loop so late that a dial is given up when the peer has gone already."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(self, make: Any, _host: str, _port: int) -> None:
        make().connection_lost(None)
        raise asyncio.CancelledError


@on_loops
async def test_nobody_is_told_why_a_dial_failed_that_was_given_up() -> None:
    """The loop would say that an exception was never retrieved, on the standard error of whoever uses the client."""
    loop, said = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _loop, context: said.append(context["message"]))
    terms = dialling()
    terms.shared.loop = GivenUp(loop)  # type: ignore[assignment]
    with pytest.raises(asyncio.CancelledError):
        await dial_tls(terms, lambda: Recorder(loop, Intake(loop), 1 << 20), "127.0.0.1", 1)
    gc.collect()
    assert said == []


@on_loops
async def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    async with answering_with(b"") as port:
        loop = asyncio.get_running_loop()
        terms = dialling(timeout_s=0.05)
        with pytest.raises(TlsFailure) as found:
            await dial_tls(terms, lambda: Recorder(loop, Intake(loop), 1 << 20), "127.0.0.1", port)
        assert found.value.kind is Kind.TIMED_OUT


@contextlib.asynccontextmanager
async def answering_with(answer: bytes) -> AsyncIterator[int]:
    """The port of a server that says this and then waits for the end."""
    over = asyncio.Event()

    async def serve(reader: Reader, writer: Writer) -> None:
        writer.write(answer)
        await ended(reader)
        writer.close()
        over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    await over.wait()
    server.close()
    await server.wait_closed()


@on_loops
async def test_a_link_over_tls_tells_why_it_broke() -> None:
    async with listening(server_context(client_auth="required", **trusting())) as listener:
        loop = asyncio.get_running_loop()
        link = Link(loop, Intake(loop), "127.0.0.1", listener.port, 1 << 20)
        await dial_tls(dialling(), lambda: link, "127.0.0.1", listener.port, called=HOST)
        await until(lambda: link.why_lost)
        assert "certificate required" in link.why_lost


# Those who speak something else, stop, or lie.


async def raw(listener: Listener) -> tuple[Reader, Writer]:
    return await asyncio.open_connection("127.0.0.1", listener.port)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (struct.pack(">ihhih", 10, 18, 0, 1, -1), Kind.PLAINTEXT),
        (b"GET / HTTP/1.0\r\n\r\n", Kind.FOREIGN),
        (b"\x80\x2e\x01\x03\x01", Kind.FOREIGN),
        (b"\x15\x03\x01\x00\x02\x02\x28", Kind.FOREIGN),
        (b"\x16\x03\x01\xff\xff", Kind.BROKEN),
        (b"\x16\x03\x01\x00\x00", Kind.BROKEN),
    ],
)
@on_loops
async def test_what_is_no_tls_is_closed_without_a_byte_and_named(first: bytes, kind: Kind) -> None:
    """A plaintext client would take an alert for a frame of 352 MB."""
    async with listening() as listener:
        reader, writer = await raw(listener)
        writer.write(first)
        assert await ended(reader) == b""
        assert [each.kind for each in listener.failures] == [kind]
        assert not listener.streams
        writer.close()


@on_loops
async def test_who_comes_and_goes_without_a_word_is_not_talked_about() -> None:
    async with listening() as listener:
        reader, writer = await raw(listener)
        await until(lambda: listener.accepted)
        writer.close()
        await until(lambda: listener.accepted[0].is_closing())
        assert not listener.outcomes
        assert await ended(reader) == b""


def hello_bytes() -> bytes:
    client = TlsLayer(client_context(), server_side=False, host=HOST)
    client.shake()
    return client.take()


@pytest.mark.parametrize("sent", [0, 1, 4, 5, 100, -1])
@on_loops
async def test_a_handshake_that_stops_is_ended_when_its_time_is_up(sent: int) -> None:
    """Also one that never begins. Only a whole hello costs more than its bytes."""
    async with listening(timeout_s=0.05) as listener:
        reader, writer = await raw(listener)
        hello = hello_bytes()
        writer.write(hello if sent < 0 else hello[:sent])
        answer = await ended(reader)
        assert bool(answer) is (sent < 0)
        assert [each.kind for each in listener.failures] == [Kind.TIMED_OUT]
        writer.close()


@pytest.mark.parametrize("sent", [1, 100, -1])
@on_loops
async def test_a_client_that_leaves_in_the_middle_of_its_handshake_is_told_of(sent: int) -> None:
    async with listening() as listener:
        reader, writer = await raw(listener)
        hello = hello_bytes()
        writer.write(hello if sent < 0 else hello[:sent])
        writer.write_eof()
        await ended(reader)
        await until(lambda: listener.outcomes)
        assert [each.kind for each in listener.failures] == [Kind.ENDED]
        writer.close()


@on_loops
async def test_a_hello_in_two_pieces_is_a_hello() -> None:
    async with listening() as listener:
        reader, writer = await raw(listener)
        hello = hello_bytes()
        for piece in (hello[:3], hello[3:9], hello[9:]):
            writer.write(piece)
            await asyncio.sleep(0.001)
        assert (await reader.readexactly(5))[:2] == b"\x16\x03"
        writer.close()


@on_loops
async def test_damage_ends_its_own_connection_and_no_other() -> None:
    async with listening() as listener:
        listener.prepare = echo
        reader, writer = await foreign(listener)
        for seed in range(20):
            draw = random.Random(seed)
            theirs, mine = await raw(listener)
            hello = bytearray(hello_bytes())
            for _ in range(3):
                hello[draw.randrange(5, len(hello))] = draw.randrange(256)
            mine.write(hello + draw.randbytes(300))
            mine.write_eof()
            await ended(theirs)
            mine.close()
            writer.write(framed(b"alive"))
            assert await reader.readexactly(9) == framed(b"alive")
        writer.close()


@on_loops
async def test_damage_in_a_standing_connection_is_answered_by_an_alert_and_told() -> None:
    async with listening() as listener:
        reader, writer = await raw(listener)
        client = TlsLayer(client_context(), server_side=False, host=HOST)
        while not client.shake():
            writer.write(client.take())
            client.receive(await reader.read(65536))
        writer.write(client.take())
        await until(lambda: listener.outcomes == [None])
        hurt = bytearray(client.encrypt(framed(b"x")))
        hurt[-1] ^= 1
        writer.write(hurt)
        client.receive(await ended(reader))
        with pytest.raises(TlsFailure, match="the peer refused: bad record mac"):
            client.read_into(memoryview(bytearray(100)))
        assert [each.kind for each in listener.failures] == [Kind.BROKEN]
        assert listener.streams[0].gone
        writer.close()


# The end.


@on_loops
async def test_a_peer_that_says_farewell_still_gets_its_replies() -> None:
    async with listening() as listener:
        listener.prepare = lambda stream: setattr(stream, "finishes", lambda _stream, _frame: False)
        reader, writer = await raw(listener)
        client = TlsLayer(client_context(), server_side=False, host=HOST)
        while not client.shake():
            writer.write(client.take())
            client.receive(await reader.read(65536))
        writer.write(client.take() + client.encrypt(framed(b"ask")) + client.farewell())
        writer.write_eof()
        await until(lambda: listener.streams and listener.streams[0].frames)
        stream = listener.streams[0]
        stream.send([framed(b"answer")])
        stream.done(3)
        ciphertext = await ended(reader)
        assert len(ciphertext) > 10
        assert stream.gone
        writer.close()


@on_loops
async def test_a_peer_that_cuts_the_line_without_a_farewell_is_gone() -> None:
    async with listening() as listener:
        _, writer = await foreign(listener)
        await until(lambda: listener.outcomes)
        raw_socket: socket.socket = writer.get_extra_info("socket")
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await until(lambda: listener.streams[0].gone)


@on_loops
async def test_who_is_closed_by_us_hears_a_farewell_after_the_last_reply() -> None:
    async with listening() as listener:

        def last(stream: Recorder, frame: bytearray) -> bool:
            stream.send([framed(bytes(frame) * 1000)])
            stream.close()
            return True

        listener.prepare = lambda stream: setattr(stream, "finishes", last)
        reader, writer = await foreign(listener)
        writer.write(framed(b"x" * 1000))
        # asyncio's reader raises for an end without a farewell.
        assert await reader.read() == framed(b"x" * 1_000_000)
        writer.close()


@on_loops
async def test_a_crowd_of_handshakes_leaves_turns_for_others() -> None:
    async with listening() as listener:
        listener.prepare = echo
        reader, writer = await foreign(listener)
        hello = hello_bytes()
        crowd = [await raw(listener) for _ in range(60)]
        for _, each in crowd:
            each.write(hello)
        most, asked = 0, 0
        while any(stream._layer is None for stream in listener.accepted):
            most = max(most, listener.shared.turns.waiting)
            writer.write(framed(b"me too"))
            assert await reader.readexactly(10) == framed(b"me too")
            asked += 1
        assert most or asked > 1
        for _, each in crowd:
            each.close()
        writer.close()


@on_loops
async def test_a_dial_that_is_given_up_while_it_waits_for_its_turn_is_forgotten() -> None:
    """Its step would open a connection that nobody wants, or fail and end the turn of all others."""
    loop, made = asyncio.get_running_loop(), list[Recorder]()

    def make() -> Recorder:
        made.append(Recorder(loop, Intake(loop), 1 << 20))
        return made[-1]

    async with listening() as listener:
        shared = TlsShared(loop)
        terms = TlsTerms(shared, client_context(), lambda *_: None, server_side=False)
        shared.turns._left = 0  # others have had all steps of this turn
        shared.turns._turning = True
        dial = loop.create_task(dial_tls(terms, make, "127.0.0.1", listener.port, called=HOST))
        await until(lambda: shared.turns.waiting)
        dial.cancel()
        # In the turn in which the dial ends, and before the loop has told of the end of its socket.
        loop.call_soon(shared.turns._turn)
        with pytest.raises(asyncio.CancelledError):
            await dial
        await asyncio.sleep(0)
        assert (made, shared.turns.waiting) == ([], 0)


@on_loops
async def test_a_dial_that_is_given_up_before_its_connection_is_told_leaves_none_behind() -> None:
    made: list[TlsStream] = []

    class Kept(TlsStream):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(self)
            super().connection_made(transport)
            dial.cancel()

    loop = asyncio.get_running_loop()
    async with listening() as listener:
        terms = TlsTerms(TlsShared(loop), client_context(), lambda *_: None, server_side=False)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(stream_module, "TlsStream", Kept)
            dial = loop.create_task(
                dial_tls(terms, lambda: Recorder(loop, Intake(loop), 1 << 20), "127.0.0.1", listener.port, called=HOST)
            )
            with pytest.raises(asyncio.CancelledError):
                await dial
        assert made[0].is_closing()
