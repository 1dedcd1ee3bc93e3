"""Which files a table may have: its own. A link that leads out of the warehouse leads nowhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from penstock.spark.lake.places import absolute, is_local
from penstock.spark.lake.query import SqlRefused

if TYPE_CHECKING:
    from penstock.spark.lake.store import TableStore


def check_inside(name: str, store: TableStore, warehouse: str) -> None:
    """`SqlRefused` when the table, its log or a file lies elsewhere than in the warehouse, once links are followed.

    Tables of an object store have to name files below their own location: there are no links there.
    """
    if not is_local(_plain(store.location)):
        for file in store.files():
            if not file.path.startswith(f"{store.location.rstrip('/')}/") or "/../" in file.path:
                raise _outside(name)
        return
    root = Path(os.path.realpath(_plain(absolute(warehouse))))
    places = [_plain(store.location), *(f"{_plain(store.location)}/{log}" for log in ("_delta_log", "metadata"))]
    for place in places:
        if not _below(Path(os.path.realpath(place)), root):
            raise _outside(name)
    log = Path(places[1])
    if log.is_dir() and any(each.is_symlink() for each in log.iterdir()):
        raise _outside(name)
    for file in store.files():
        path = os.path.realpath(_plain(file.path))
        if not _below(Path(path), root):
            raise _outside(name)
        try:
            regular = stat.S_ISREG(os.stat(path).st_mode)
        except OSError:
            raise SqlRefused(f"a file of table {name} is gone: {os.path.basename(path)}") from None
        if not regular:
            raise _outside(name)


def _below(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def _plain(place: str) -> str:
    parts = urlsplit(place)
    return unquote(parts.path) if parts.scheme == "file" else place


def _outside(name: str) -> SqlRefused:
    return SqlRefused(f"table {name} has files outside of its warehouse, which are not read here")
