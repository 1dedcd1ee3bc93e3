"""The client configuration that `penstock dev --secure` left in its folder, found by commands themselves.

It is used only for the addresses that it names: what is a password here is nobody else's business. A file that others
than its owner could have written is left alone.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from penstock.model.errors import PenstockError

DEFAULT_FOLDER: Final = ".penstock"
_FILE: Final = Path("security") / "admin.properties"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def config_in(folder: str, bootstrap: str | None) -> Path:
    """Of a folder that was named; PenstockError when it has none, or one that does not name all of `bootstrap`."""
    path = Path(folder) / _FILE
    if not _is_ours(path):
        raise PenstockError(f"{path} is not there; `penstock dev --secure --data-dir {folder}` writes it")
    if bootstrap is not None and config_for(bootstrap, Path(folder)) is None:
        raise PenstockError(f"{path} is not for {bootstrap}; it names {_text_of(path)}")
    return path


def config_for(bootstrap: str, folder: Path = Path(DEFAULT_FOLDER)) -> Path | None:
    """The file in `folder`, if all these addresses are named in it."""
    path = folder / _FILE
    if not _is_ours(path):
        return None
    try:
        named = _addresses(_text_of(path))
    except ValueError:
        return None
    return path if _addresses(bootstrap) <= named else None


def _text_of(path: Path) -> str:
    from penstock.model.config.files import parse_properties

    return parse_properties(path.read_text(encoding="utf-8")).get("bootstrap.servers", "")


def _addresses(bootstrap: str) -> set[tuple[str, int]]:
    from penstock.client.cluster_view import parse_bootstrap

    return {_spelled(*address) for address in parse_bootstrap(bootstrap)}


def _spelled(host: str, port: int) -> tuple[str, int]:
    """The loopback has several names, and they are all this machine."""
    return ("localhost" if host.lower() in _LOOPBACK else host.lower(), port)


def _is_ours(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
