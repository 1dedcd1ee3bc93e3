"""Knocking at an address with plain sockets: who is there, and what does it speak?"""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass
from typing import Literal

Answer = Literal["kafka", "name", "refused", "timeout", "unreachable", "http", "tls", "silent", "closed"]

# ApiVersions in its oldest version, which every broker answers: size, key 18, version 0, correlation id 1, no client.
_ASK = struct.pack(">ihhih", 10, 18, 0, 1, -1)
_FRAME_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Knock:
    """How an address answered, and the system's own words if it did not."""

    answer: Answer
    words: str = ""


def knock(host: str, port: int, timeout_s: float = 3.0, *, expects_tls: bool = False) -> Knock:
    """`expects_tls` asks in TLS first: to a listener with TLS everything else is worth a warning in its log."""
    if expects_tls and _speaks_tls(host, port, timeout_s):
        return Knock("tls")
    try:
        with socket.create_connection((host, port), timeout_s) as peer:
            answer = _ask(peer)
    except socket.gaierror as unknown:
        return Knock("name", unknown.strerror or str(unknown))
    except ConnectionRefusedError as refused:
        return Knock("refused", str(refused))
    except TimeoutError:
        return Knock("timeout", f"nothing within {timeout_s:g} s")
    except OSError as failed:
        return Knock("unreachable", failed.strerror or str(failed))
    if answer in ("kafka", "http", "tls"):
        return Knock(answer)
    return Knock(_otherwise(host, port, timeout_s) or answer)


def peer_certificate(host: str, port: int, timeout_s: float = 3.0) -> bytes | None:
    """The certificate that an address shows, in DER, whoever signed it; None when it shows none."""
    try:
        with socket.create_connection((host, port), timeout_s) as peer, _unchecked().wrap_socket(peer) as speaking:
            return speaking.getpeercert(binary_form=True)
    except OSError:
        return None


def _unchecked() -> ssl.SSLContext:
    """Trusts everybody, because nothing is told to anybody: it is only asked who is there."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _ask(peer: socket.socket) -> Answer:
    try:
        peer.sendall(_ASK)
        head = _receive(peer, 8)
    except TimeoutError:
        return "silent"
    except OSError:
        return "closed"
    if head.startswith(b"HTTP"):
        return "http"
    if head[:2] == b"\x15\x03":  # a TLS alert: it took our request for a broken handshake
        return "tls"
    if len(head) < 8:
        return "closed"
    size, correlation = struct.unpack(">ii", head)
    return "kafka" if correlation == 1 and 0 < size < _FRAME_MAX else "silent"


def _receive(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := peer.recv(size - len(data))):
        data += chunk
    return data


def _otherwise(host: str, port: int, timeout_s: float) -> Answer | None:
    """Asks in the two languages that usually stand behind a wrong port."""
    try:
        with socket.create_connection((host, port), timeout_s) as peer:
            peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
            if _receive(peer, 4) == b"HTTP":
                return "http"
    except OSError:
        pass
    return "tls" if _speaks_tls(host, port, timeout_s) else None


def _speaks_tls(host: str, port: int, timeout_s: float) -> bool:
    try:
        with socket.create_connection((host, port), timeout_s) as peer, _unchecked().wrap_socket(peer):
            return True
    except ssl.SSLError as failed:
        # A server that wants a certificate of ours speaks TLS too; one that sends something else does not.
        return "ALERT" in (failed.reason or "")
    except OSError:
        return False
