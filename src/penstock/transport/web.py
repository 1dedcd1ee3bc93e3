"""One question to a web server that the configuration names: an identity provider's keys, or a token from it.

Nothing is followed and nothing is kept: no redirects, no cookies, no proxies, one answer of at most a megabyte within
ten seconds, certificates checked against the system's authorities. What an answer says is never part of an error,
because whoever may choose an address could read other people's answers that way (CVE-2025-27817).

`file:` addresses are read like answers. Whether an address may be asked at all is for `Allowed` to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    import ssl

ANSWER_BYTES_MAX: Final = 1 << 20
TIMEOUT_MS: Final = 10_000
_LINE_BYTES_MAX: Final = 16 << 10
_HEADERS_MAX: Final = 100
_PORTS: Final = {"http": 80, "https": 443, "file": 0}

Run = Callable[..., Awaitable[Any]]
"""Runs a function off the loop."""


class BadAddress(PenstockError):
    """An address that cannot be asked, or may not be."""


class WebFailed(PenstockError):
    """No good answer. `again`: the same question may be answered later."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again


@dataclass(frozen=True, slots=True)
class Address:
    """Where to ask: `target` is a path with its query, or the path of a file."""

    scheme: str
    host: str
    port: int
    target: str

    def __str__(self) -> str:
        """Without the query: some people put secrets there."""
        path = self.target.partition("?")[0]
        return f"file:{path}" if self.scheme == "file" else f"{self.scheme}://{self.host}:{self.port}{path}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The addresses and files that a node may ask. Word for word: a prefix would allow more than it seems to."""

    urls: frozenset[str]
    files: frozenset[str]

    def check(self, url: str) -> Address:
        address = address_of(url)
        if address.scheme == "file":
            if address.target not in self.files:
                raise BadAddress(f"{address} is not in penstock.sasl.oauthbearer.allowed.files")
        elif url not in self.urls:
            raise BadAddress(f"{address} is not in penstock.sasl.oauthbearer.allowed.urls")
        return address


def address_of(url: str) -> Address:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadAddress("an address has printable ASCII characters, and no blanks")
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise BadAddress("this is no address of the web") from None
    if parts.scheme not in _PORTS or "@" in parts.netloc or parts.fragment:
        raise BadAddress("an address begins with http:, https: or file:, and has no user and no fragment")
    if parts.scheme == "file":
        path = unquote(parts.path)
        if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
            raise BadAddress("a file's address is file: and its absolute path")
        return Address("file", "", 0, path)
    if not parts.hostname:
        raise BadAddress("the address names no host")
    return Address(parts.scheme, parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


async def ask(
    address: Address, run: Run, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """The answer to a GET, or to a POST when there is a `body`. `WebFailed` for anything but status 200."""
    if address.scheme == "file":
        found: bytes = await run(_read, address.target)
        return found
    try:
        async with asyncio.timeout(TIMEOUT_MS / 1_000):
            tls = await run(_context) if address.scheme == "https" else None
            return await _asked(address, tls, body, headers or {})
    except TimeoutError:
        raise WebFailed(f"{address}: no answer within {TIMEOUT_MS // 1_000} s", again=True) from None
    except (OSError, EOFError) as broken:
        raise WebFailed(f"{address}: {_why(broken)}", again=True) from None
    except ValueError:
        raise WebFailed(f"{address}: the answer is no HTTP that is read here", again=False) from None


async def _asked(address: Address, tls: ssl.SSLContext | None, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls, limit=_LINE_BYTES_MAX)
    try:
        writer.write(_question(address, body, headers))
        await writer.drain()
        status, answered = await _head(reader)
        if status != 200:
            # A redirect is not followed: it would lead where nobody has allowed to go.
            raise WebFailed(f"{address}: status {status}", again=status >= 500 or status == 429)
        return await _body(reader, answered)
    finally:
        writer.transport.abort()


def _question(address: Address, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = "" if address.port == _PORTS[address.scheme] else f":{address.port}"
    lines = [
        f"{'GET' if body is None else 'POST'} {address.target} HTTP/1.1",
        f"Host: {host}{port}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode("ascii") + (body or b"")


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    words = (await _line(reader)).split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise ValueError("no status line")
    headers: dict[str, str] = {}
    while line := await _line(reader):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
        if len(headers) > _HEADERS_MAX:
            raise ValueError("too many headers")
    return int(words[1]), headers


async def _line(reader: asyncio.StreamReader) -> str:
    """ValueError when it is too long, EOFError when the stream ends before it does."""
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection ended within the answer")
    return line.decode("latin-1").rstrip("\r\n")


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(reader)
    length = headers.get("content-length")
    if length is None:
        return await _rest(reader)
    return await reader.readexactly(_bounded(int(length)))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while size := int((await _line(reader)).partition(";")[0], 16):
        found += await reader.readexactly(_bounded(size, len(found)))
        if await _line(reader):
            raise ValueError("a chunk does not end where it says")
    return bytes(found)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while part := await reader.read(_LINE_BYTES_MAX):
        _bounded(len(part), len(found))
        found += part
    return bytes(found)


def _bounded(size: int, before: int = 0) -> int:
    if not 0 <= size <= ANSWER_BYTES_MAX - before:
        raise ValueError("the answer is too long")
    return size


def _context() -> ssl.SSLContext:
    import ssl

    return ssl.create_default_context()


def _read(path: str) -> bytes:
    import os
    import stat

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise WebFailed(f"file:{path}: this is no file", again=False)
        with open(path, "rb") as file:
            found = file.read(ANSWER_BYTES_MAX + 1)
    except OSError as broken:
        raise WebFailed(f"file:{path}: {broken.strerror}", again=True) from None
    if len(found) > ANSWER_BYTES_MAX:
        raise WebFailed(f"file:{path}: more than {ANSWER_BYTES_MAX} bytes", again=False)
    return found


def _why(broken: Exception) -> str:
    """Of what the system says; a certificate's error has its own words."""
    said = getattr(broken, "verify_message", None) or getattr(broken, "strerror", None)
    return str(said or "the connection ended within the answer")
