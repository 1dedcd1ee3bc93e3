"""Addresses to listen on, as users write them: `udp://0.0.0.0:514`, `127.0.0.1:8686`, `[::1]:5140`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.declared.mistakes import did_you_mean

if TYPE_CHECKING:
    from penstock.declared.fields import Table

_ADDRESS = re.compile(
    r"(?:(?P<scheme>[A-Za-z0-9+.-]*)://)?(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:\[\]/]*)):(?P<port>\d{1,5})/?"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 means any that is free."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class NotAnAddress(ValueError):
    """What is wrong with it, in words."""


def parse_address(text: str, schemes: Sequence[str]) -> Address:
    """The first of `schemes` is meant when the text names none. Raises NotAnAddress."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        raise NotAnAddress(f'{text!r} is not an address: write it as "{schemes[0]}://127.0.0.1:{_EXAMPLE_PORT}"')
    scheme = (found["scheme"] or schemes[0]).lower()
    if scheme not in schemes:
        raise NotAnAddress(f"{scheme}:// in {text!r} is not known here{did_you_mean(scheme, schemes)}")
    port = int(found["port"])
    if port > 65_535:
        raise NotAnAddress(f"port {port} in {text!r} is above 65535")
    return Address(scheme, found["six"] or found["host"] or "0.0.0.0", port)


def read_addresses(table: Table, key: str, schemes: Sequence[str], default: str | None = None) -> tuple[Address, ...]:
    """A text or a list of texts; what is wrong is noted."""
    texts = table.text_or_texts(key)
    if not texts and default is not None and key not in table:
        texts = (default,)
    if not texts and key not in table:
        table.wrong(
            None, f'{table.title} has no {key}: where to listen, such as "{schemes[0]}://0.0.0.0:{_EXAMPLE_PORT}"'
        )
    found = []
    for text in texts:
        try:
            found.append(parse_address(text, schemes))
        except NotAnAddress as wrong:
            table.wrong(key, str(wrong))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a listener. With `client_ca` senders must show a certificate that it signed."""

    cert: Path
    key: Path
    client_ca: Path | None = None


def read_tls_for(table: Table, folder: Path, listen: Sequence[Address]) -> TlsFiles | None:
    """The files for `tls://` addresses; one without the other is a mistake."""
    files = read_tls(table, folder)
    encrypted = [address for address in listen if address.scheme == "tls"]
    if encrypted and "tls" not in table:
        table.wrong(None, f'{encrypted[0]} needs tls = {{ cert = "cert.pem", key = "key.pem" }}')
    if files is not None and listen and not encrypted:
        table.wrong("tls", f"tls is for addresses that begin with tls://; {listen[0]} would not be encrypted")
    return files


def read_tls(table: Table, folder: Path) -> TlsFiles | None:
    """`tls = { cert = "…", key = "…", client_ca = "…" }`; relative paths begin at `folder`."""
    inner = table.table("tls")
    if inner is None:
        return None
    cert, key = inner.required_text("cert", "the certificate, a PEM file"), inner.required_text("key", "its key")
    client_ca = inner.text("client_ca")
    inner.finish()
    if not cert or not key:
        return None
    files = TlsFiles(folder / cert, folder / key, folder / client_ca if client_ca else None)
    for name, path in (("cert", files.cert), ("key", files.key), ("client_ca", files.client_ca)):
        if path is not None and not path.is_file():
            inner.wrong(name, f"{name}: there is no file {path}")
    return files


_EXAMPLE_PORT = 5140
