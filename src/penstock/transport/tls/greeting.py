"""Whether the first bytes of a connection are TLS, and if not, what they are.

Looked at before OpenSSL is: a connection that has not sent a whole first record costs those bytes and nothing else, and
a client of the wrong kind is told apart in words that help.
"""

from __future__ import annotations

from penstock.transport.tls.failures import Kind, TlsFailure

HEAD_BYTES = 5
_RECORD_BYTES_MAX = 1 << 14
_HANDSHAKE, _ALERT = 0x16, 0x15
_HTTP = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"PRI ")


def hello_bytes(first: bytes | bytearray) -> int:
    """How many bytes the first record of a client has, its head included; 0 when that cannot be told yet.

    Raises TlsFailure when it is none.
    """
    if first[0] != _HANDSHAKE or first[1:2] not in (b"", b"\x03"):
        raise _foreign_client(bytes(first[:4]))
    if len(first) < HEAD_BYTES:
        return 0
    length = int.from_bytes(first[3:5], "big")
    if not 0 < length <= _RECORD_BYTES_MAX:
        raise TlsFailure(Kind.BROKEN, f"this is no proper TLS: a first record of {length} bytes")
    return HEAD_BYTES + length


def check_answer(first: bytes) -> None:
    """Raises TlsFailure when what a server answers first is no TLS."""
    if first[0] in (_HANDSHAKE, _ALERT) and first[1:2] in (b"", b"\x03"):
        return
    if first[:4] in (b"HTTP", b"<htm", b"<HTM", b"<!do", b"<!DO"):
        raise TlsFailure(Kind.FOREIGN, "it answers in HTTP, not TLS")
    if first[0] == 0:
        raise TlsFailure(Kind.PLAINTEXT, "it answers in plaintext, not TLS")
    if first[:4] == b"SSH-":
        raise TlsFailure(Kind.FOREIGN, "it answers in SSH, not TLS")
    raise TlsFailure(Kind.FOREIGN, "it does not answer in TLS")


def _foreign_client(first: bytes) -> TlsFailure:
    # A frame begins with its size, which is far below 16 MB for whatever a client says first.
    if first[0] == 0:
        return TlsFailure(Kind.PLAINTEXT, "this looks like a plaintext client on a TLS listener")
    if first in _HTTP:
        return TlsFailure(Kind.FOREIGN, "this looks like HTTP on a TLS listener")
    return TlsFailure(Kind.FOREIGN, "this is no TLS")
