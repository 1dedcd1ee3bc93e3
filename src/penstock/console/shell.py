"""The front end as files: one page for every address of a page, and its parts, which never change under their names."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from penstock.console.failures import Declined
from penstock.console.settings import is_prefix

DIST: Final = Path(__file__).parent / "web" / "dist"
BASE: Final = '<base href="/">'
# What the system's tables of types say differs from machine to machine.
_KINDS: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
_TEXT: Final = (".js", ".css", ".svg", ".json", ".txt")
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class FrontEnd:
    """The built files, read once: they are few and small."""

    def __init__(self, base_path: str, folder: Path = DIST) -> None:
        self._base_path = base_path
        self._files = {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }
        # Packed here: another release of zlib packs otherwise, and built files are compared byte by byte.
        self._packed = {
            name: gzip.compress(data, 6, mtime=0) for name, data in self._files.items() if name.endswith(_TEXT)
        }

    @property
    def styles(self) -> list[str]:
        return sorted(name for name in self._files if name.endswith(".css"))

    async def page(self, request: Request) -> Response:
        """The shell of every page; what it shows is decided by the address."""
        shell = self._files.get("index.html")
        if shell is None:
            raise Declined(
                404, "not_found", "this build has no front end", "the API is under api/v1/; `make ui` builds the pages"
            )
        base = f'<base href="{prefix_of(request.scope, self._base_path)}/">'
        return Response(
            shell.replace(BASE.encode(), base.encode(), 1),
            media_type="text/html",
            headers={"cache-control": "no-cache", "vary": "X-Forwarded-Prefix"},
        )

    async def asset(self, request: Request) -> Response:
        """A part of it, packed if the browser takes that."""
        name = request.path_params["name"]
        found = self._files.get(name)
        if found is None or name == "index.html":
            raise Declined(404, "not_found", f"there is no file {name!r} here")
        headers = {"cache-control": _FOR_EVER, "vary": "Accept-Encoding"}
        packed = self._packed.get(name)
        if packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            found, headers["content-encoding"] = packed, "gzip"
        kind = _KINDS.get(Path(name).suffix, "application/octet-stream")
        return Response(found, media_type=kind, headers=headers)


def prefix_of(scope: Scope, base_path: str) -> str:
    """What stands before all paths: what was said at the start, else what a proxy says that took it off."""
    if base_path:
        return base_path
    told = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
    return told if is_prefix(told) else ""
