"""Replies of the admin port."""

from __future__ import annotations

import json
from typing import NamedTuple


class Page(NamedTuple):
    """A reply: status, media type and body, which may be in pieces: a large one is never copied as a whole."""

    status: int
    media_type: str
    body: bytes | list[bytes]
    headers: tuple[tuple[str, str], ...] = ()


def words(status: int, sentence: str) -> Page:
    return Page(status, "text/plain; charset=utf-8", f"{sentence}\n".encode())


def verdict(reasons: list[str], word: str, *, told_why: bool = True) -> Page:
    """Whether the node is what `word` says. `reasons` why not may be for those alone who logged in."""
    said: dict[str, object] = {"status": word if not reasons else f"not {word}"}
    if told_why:
        said["reasons"] = reasons
    return Page(503 if reasons else 200, "application/json", json.dumps(said).encode() + b"\n")
