"""The layer without a socket: bytes arrive in any pieces, damaged or not at all, and it always knows what to say."""

from __future__ import annotations

import functools
import random
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.layer import HANDSHAKE_BYTES_MAX, PIECE_BYTES, TlsLayer
from tests.properties import examples
from tests.unit.transport.tls.world import HOST, Wire, client_context, leaf, read_all, server_context, trusting

VERSIONS = ["TLSv1.2", "TLSv1.3"]


@functools.cache
def contexts(version: str, mutual: bool) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    given = {"client_auth": "required", **trusting()} if mutual else {}
    return server_context(enabled_protocols=version, **given), client_context(leaf("bob") if mutual else None)


def standing(version: str = "TLSv1.3", *, mutual: bool = False) -> Wire:
    return Wire(*contexts(version, mutual)).shake()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mutual", [False, True])
def test_what_one_writes_the_other_reads(version: str, mutual: bool) -> None:
    wire = standing(version, mutual=mutual)
    for size in (1, 300, 16384, 16385, PIECE_BYTES, PIECE_BYTES + 1, 300_000):
        text = random.Random(size).randbytes(size)
        assert wire.to_server(text) == text
        assert wire.to_client(text) == text


@pytest.mark.parametrize("version", VERSIONS)
def test_the_subject_of_the_peer_is_that_of_its_certificate(version: str) -> None:
    from tests.unit.transport.tls.world import certificate_of

    wire = standing(version, mutual=True)
    assert wire.server.peer_subject == certificate_of(leaf("bob")).subject.public_bytes()
    assert wire.client.peer_subject == certificate_of(leaf()).subject.public_bytes()


# Any pieces.


def fed(layer: TlsLayer, ciphertext: bytes, cuts: list[int]) -> bytes:
    """What is read when the bytes come in these pieces."""
    got, at = b"", 0
    for cut in [*cuts, len(ciphertext)]:
        layer.receive(ciphertext[at:cut])
        got, at = got + read_all(layer), cut
    return got


@pytest.mark.parametrize("version", VERSIONS)
def test_ciphertext_may_be_cut_at_every_byte(version: str) -> None:
    wire = standing(version)
    for cut in range(1, 400):
        text = bytes([cut & 0xFF]) * 320
        ciphertext = wire.client.encrypt(text)
        assert fed(wire.server, ciphertext, [min(cut, len(ciphertext))]) == text
    ciphertext = b"".join(wire.client.encrypt(bytes([n])) for n in range(50))
    assert fed(wire.server, ciphertext, list(range(1, len(ciphertext)))) == bytes(range(50))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_handshake_may_come_byte_by_byte(version: str) -> None:
    wire = Wire(
        server_context(enabled_protocols=version, client_auth="required", **trusting()), client_context(leaf("b"))
    )
    for _ in range(10):
        for side, other in ((wire.client, wire.server), (wire.server, wire.client)):
            if not side.established:
                side.shake()
            for byte in side.take():
                other.receive(bytes([byte]))
                if not other.established:
                    other.shake()
    assert wire.to_server(b"hello") == b"hello"


@given(st.integers(0, 2**32))
def test_whatever_the_pieces_and_the_room_the_text_is_the_same(seed: int) -> None:
    draw = random.Random(seed)
    wire = standing()
    text = draw.randbytes(draw.randrange(1, 120_000))
    ciphertext = b"".join(wire.client.pieces(text))
    got, at = b"", 0
    while at < len(ciphertext):
        step = draw.randrange(1, 40_000)
        wire.server.receive(ciphertext[at : at + step])
        at += step
        got += read_all(wire.server, draw.randrange(500, 70_000))
    assert got == text


def test_what_was_encrypted_with_the_last_step_of_the_handshake_is_not_lost() -> None:
    wire = Wire()
    wire.client.shake()
    wire.carry(wire.client, wire.server)
    wire.server.shake()
    wire.carry(wire.server, wire.client)
    assert wire.client.shake()
    wire.server.receive(wire.client.take() + wire.client.encrypt(b"first words"))
    assert wire.server.shake()
    assert read_all(wire.server) == b"first words"


# Bounds.


def test_what_is_kept_for_good_is_one_piece() -> None:
    """OpenSSL's buffers keep the size that they once had, so nobody may make them large."""
    wire = standing()
    for piece in wire.client.pieces(bytes(1 << 20)):
        assert len(piece) <= PIECE_BYTES + 100
        wire.server.receive(piece)
        read_all(wire.server)


def test_a_handshake_that_never_ends_is_ended() -> None:
    server = TlsLayer(server_context(), server_side=True)
    # A hello that announces 16 MB, in records as large as they may be.
    records = b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16384 - 4) + b"\x16\x03\x01\x40\x00" * 4
    server.receive(records)
    with pytest.raises(TlsFailure):
        server.shake()
    wire = Wire()
    wire.server.handshake_bytes = HANDSHAKE_BYTES_MAX
    wire.client.shake()
    wire.carry(wire.client, wire.server)
    with pytest.raises(TlsFailure) as found:
        wire.server.shake()
    assert found.value.kind is Kind.TOO_MUCH


def test_a_large_request_right_behind_the_handshake_is_no_long_handshake() -> None:
    wire = Wire()
    wire.client.shake()
    wire.carry(wire.client, wire.server)
    wire.server.shake()
    wire.carry(wire.server, wire.client)
    assert wire.client.shake()
    text = bytes(2 * HANDSHAKE_BYTES_MAX)
    wire.server.receive(wire.client.take() + b"".join(wire.client.pieces(text)))
    assert wire.server.shake()
    assert read_all(wire.server) == text


def test_records_without_a_byte_in_them_come_to_an_end() -> None:
    wire = standing("TLSv1.3")
    # Changes of cipher that mean nothing are dropped without a word in this version, for the sake of old boxes between.
    nothing = b"\x14\x03\x03\x00\x01\x01" * 1000
    with pytest.raises(TlsFailure) as found:
        fed(wire.server, nothing * 100, list(range(0, len(nothing) * 100, 6000)))
    assert found.value.kind in (Kind.BROKEN, Kind.TOO_MUCH)


# The end.


@pytest.mark.parametrize("version", VERSIONS)
def test_a_farewell_is_heard_after_everything_that_was_said(version: str) -> None:
    wire = standing(version)
    wire.server.receive(wire.client.encrypt(b"last words") + wire.client.farewell())
    room = memoryview(bytearray(100))
    assert read_all(wire.server) == b"last words"
    assert wire.server.ended
    assert wire.server.read_into(room) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_who_has_said_farewell_still_hears(version: str) -> None:
    """A client that closed its sending half gets the replies that it asked for."""
    wire = standing(version)
    wire.server.receive(wire.client.encrypt(b"ask") + wire.client.farewell())
    assert read_all(wire.server) == b"ask"
    answer = wire.server.encrypt(b"answer") + wire.server.farewell()
    assert answer


@pytest.mark.parametrize("version", VERSIONS)
def test_a_farewell_can_be_said_twice(version: str) -> None:
    wire = standing(version)
    assert wire.server.farewell()
    assert wire.server.farewell() == b""


def test_a_layer_that_has_not_begun_has_no_farewell() -> None:
    assert TlsLayer(server_context(), server_side=True).farewell() == b""


# Damage.


def test_a_failure_leaves_an_alert_for_the_peer_that_names_it() -> None:
    wire = Wire(server_context(), client_context(truststore_certificates=trusting("others")["truststore_certificates"]))
    with pytest.raises(TlsFailure, match="server's certificate is not trusted"):
        wire.shake()
    wire.server.receive(wire.client.farewell())
    with pytest.raises(TlsFailure, match="the peer refused: unknown ca") as found:
        wire.server.shake()
    assert found.value.kind is Kind.REFUSED_BY_PEER


def test_what_came_in_order_is_read_before_the_damage_is_told() -> None:
    wire = standing()
    good, bad = wire.client.encrypt(b"good"), bytearray(wire.client.encrypt(b"bad"))
    bad[-1] ^= 1
    wire.server.receive(good + bytes(bad))
    room = memoryview(bytearray(100))
    assert bytes(room[: wire.server.read_into(room)]) == b"good"
    assert not wire.server.drained
    for _ in range(2):
        with pytest.raises(TlsFailure, match="bad record mac"):
            wire.server.read_into(room)


@settings(max_examples=examples(500))
@given(st.integers(0, 2**32), st.sampled_from(VERSIONS))
def test_a_changed_byte_of_a_standing_connection_is_always_found(seed: int, version: str) -> None:
    draw = random.Random(seed)
    wire = standing(version)
    texts = [draw.randbytes(draw.randrange(1, 500)) for _ in range(3)]
    records = [bytearray(wire.client.encrypt(text)) for text in texts]
    hurt = draw.randrange(3)
    records[hurt][draw.randrange(len(records[hurt]))] ^= 1 << draw.randrange(8)
    # A length that grew makes it wait for more, so more comes.
    got: list[bytes] = []
    with pytest.raises(TlsFailure):
        read_on(wire.server, b"".join(records) + bytes(40_000), got)
    assert b"".join(got) == b"".join(texts[:hurt])


def read_on(layer: TlsLayer, ciphertext: bytes, got: list[bytes]) -> None:
    layer.receive(ciphertext)
    room = memoryview(bytearray(1000))
    while True:
        got.append(bytes(room[: layer.read_into(room)]))


MUTATIONS = examples(300)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("side", ["server", "client"])
def test_damaged_handshakes_end_in_words_or_not_at_all(side: str, version: str) -> None:
    """Bytes are changed, dropped, doubled and cut in both directions; nothing but TlsFailure ever comes out."""
    draw = random.Random(side)
    failed = 0
    for _ in range(MUTATIONS):
        wire = Wire(*contexts(version, True))
        try:
            for _ in range(6):
                for one, other, hurts in (
                    (wire.client, wire.server, side == "server"),
                    (wire.server, wire.client, side == "client"),
                ):
                    if not one.established:
                        one.shake()
                    sent = one.take()
                    other.receive(mutated(sent, draw) if hurts and sent else sent)
            for layer in (wire.client, wire.server):
                if layer.established:
                    read_all(layer)
        except TlsFailure:
            failed += 1
            wire.server.farewell()
            wire.client.farewell()
    assert failed > MUTATIONS // 4
    assert Wire(*contexts(version, True)).shake().to_server(b"others go on") == b"others go on"


def mutated(sent: bytes, draw: random.Random) -> bytes:
    data = bytearray(sent)
    match draw.randrange(6):
        case 0:
            for _ in range(draw.randrange(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        case 1:
            del data[draw.randrange(len(data)) :]
        case 2:
            at = draw.randrange(len(data))
            del data[at : at + draw.randrange(1, 20)]
        case 3:
            at = draw.randrange(len(data))
            data[at:at] = data[at : at + 50]
        case 4:
            data[:5] = draw.randbytes(5)
        case _:
            pass
    return bytes(data)


def test_another_handshake_in_the_middle_is_refused() -> None:
    """CVE-2009-3555 and the ways to make a server work for nothing."""
    wire = standing("TLSv1.2")
    hello = Wire(server_context(), client_context(enabled_protocols="TLSv1.2")).client
    hello.shake()
    wire.server.receive(hello.take())
    with pytest.raises(TlsFailure):
        read_all(wire.server)


def test_nobody_is_asked_for_a_host_who_is_a_server() -> None:
    assert TlsLayer(server_context(), server_side=True, host=HOST).ssl_object.server_hostname is None
