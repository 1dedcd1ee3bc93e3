"""One side of one TLS connection without I/O: ciphertext in and out, plaintext in and out, and the handshake before it.

OpenSSL works on two buffers in memory. They grow to the most that ever lay in them and never shrink, so what is put in
at once is bounded: a connection that was busy once keeps that much for good.

| state | ciphertext comes | `shake` | `read_into` | `pieces` | `farewell` |
|---|---|---|---|---|---|
| shaking | kept | a step, bounded; established when done | - | - | an alert, if any |
| established | kept | - | plaintext, as far as there is room; ended by close_notify | ciphertext | close_notify |
| ended | nothing is read any more | - | nothing | ciphertext: the other half is open | close_notify |
| failed | - | raises | raises | raises | what OpenSSL left for the peer |
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import cast

from penstock.security.der import NotDer, subject_of
from penstock.transport.tls.failures import Kind, TlsFailure, failure_of

PIECE_BYTES = 32 << 10
"""The most that is encrypted at once, or given to OpenSSL to be decrypted."""

HANDSHAKE_BYTES_MAX = 64 << 10
"""A hello of two kilobytes and a long chain of large certificates are half of this."""

# Key updates and empty records cost work and bring nothing. A whole record and a reading's worth of others may come
# before the first byte; nobody needs more.
_BARREN_BYTES_MAX = 256 << 10


class TlsLayer:
    """The state of one connection. Whoever has it feeds it, and sends on what `take` and `pieces` give."""

    __slots__ = (
        "_barren_bytes", "_failure", "_incoming", "_outgoing", "_server_side", "drained", "ended", "established",
        "handshake_bytes", "ssl_object",
    )  # fmt: skip

    def __init__(self, context: ssl.SSLContext, *, server_side: bool, host: str | None = None) -> None:
        """`host` is whom the certificate of a server has to name, and what it is asked for."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=None if server_side else host
        )
        self._server_side = server_side
        self._failure: TlsFailure | None = None
        self._barren_bytes = 0
        self.handshake_bytes = 0
        self.established = False
        self.drained = True  # what has come is read
        self.ended = False  # the peer said that it sends nothing more

    # The handshake.

    def shake(self) -> bool:
        """Goes as far as what has come allows; True when the handshake is done. Raises TlsFailure."""
        if self._failure is not None:
            raise self._failure
        try:
            self.ssl_object.do_handshake()
        except ssl.SSLWantReadError:
            # Not before: the last bytes of a handshake may come together with the first ones of a large request.
            if self.handshake_bytes > HANDSHAKE_BYTES_MAX:
                self._failure = TlsFailure(Kind.TOO_MUCH, f"a handshake of more than {HANDSHAKE_BYTES_MAX} bytes")
                raise self._failure from None
            return False
        except ssl.SSLError as error:
            raise self._failed(error) from None
        self.established = True
        return True

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's own certificate in DER, once established; None when it showed none."""
        return self.ssl_object.getpeercert(binary_form=True)

    @property
    def peer_subject(self) -> bytes | None:
        """Its subject, the DER of a Name; None when there is no certificate, or no sense in it."""
        certificate = self.peer_certificate
        try:
            return None if certificate is None else subject_of(certificate).whole
        except NotDer:
            return None

    # In.

    def receive(self, ciphertext: bytes | bytearray | memoryview) -> None:
        """Takes what the socket read."""
        if not self.established:
            self.handshake_bytes += len(ciphertext)
        self._incoming.write(ciphertext)
        self._barren_bytes += len(ciphertext)

    def read_into(self, room: memoryview) -> int:
        """Decrypts into `room` what has come whole; how many bytes. `drained` says whether to ask again at once.

        0 is for nothing yet, or for nothing ever: `ended`.
        """
        if self._failure is not None:
            raise self._failure
        if self.ended:
            return 0
        filled, end = 0, len(room)
        self.drained = True
        read, incoming = self.ssl_object.read, self._incoming
        try:
            while filled < end:
                # A record a call.
                count = cast(int, read(end - filled, room[filled:] if filled else room))
                if not count:
                    self.ended = True
                    break
                filled += count
                # Asked first, because OpenSSL's word for "no more" is an exception, dearer than a small record.
                if not incoming.pending and not self.ssl_object.pending():
                    break
            else:
                self.drained = False
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            # What came before it was in order, and is told first.
            failure = self._failed(error)
            self.drained = False
            if not filled:
                raise failure from None
        if filled:
            self._barren_bytes = 0
        elif self._barren_bytes > _BARREN_BYTES_MAX:
            self._failure = TlsFailure(Kind.TOO_MUCH, f"{self._barren_bytes} bytes of TLS without a byte in them")
            raise self._failure
        return filled

    # Out.

    @property
    def has_output(self) -> bool:
        """Whether something is for the peer that nobody wrote: a step of the handshake, the answer to an update."""
        return self._outgoing.pending > 0

    def take(self) -> bytes:
        """What is for the peer, alerts included."""
        return self._outgoing.read()

    def encrypt(self, plaintext: bytes | bytearray | memoryview) -> bytes:
        """At least one byte and at most `PIECE_BYTES`, or a connection keeps more memory than it should."""
        try:
            written = self.ssl_object.write(plaintext)
        except ssl.SSLError as error:
            raise self._failed(error) from None
        assert written == len(plaintext), "a buffer in memory takes everything"
        return self._outgoing.read()

    def pieces(self, plaintext: bytes | bytearray | memoryview) -> list[bytes]:
        """All of it, encrypted, in pieces."""
        view = memoryview(plaintext)
        return [self.encrypt(view[at : at + PIECE_BYTES]) for at in range(0, len(view), PIECE_BYTES)]

    def farewell(self) -> bytes:
        """close_notify, or whatever else is left for the peer. Nothing can be encrypted afterwards."""
        if self._failure is None and self.established:
            # It wants the peer's farewell too, which nobody waits for.
            with suppress(ssl.SSLError, OSError):
                self.ssl_object.unwrap()
        return self._outgoing.read()

    def _failed(self, error: ssl.SSLError) -> TlsFailure:
        self._failure = failure_of(error, server_side=self._server_side)
        return self._failure
