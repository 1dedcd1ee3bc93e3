"""What is in the files: lines of an exact length, as text, as JSON and as a web server writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

BLOCK_BYTES = 8_000_000
"""So much is different before lines repeat."""

LINES_A_SECOND = 100
"""A busy server's; lines of one second have the same time."""

_TEXT = "abcdefghijklmnopqrstuvwxyz      0123456789"


def _padding(chance: random.Random, size: int) -> str:
    return "".join(chance.choices(_TEXT, k=max(size, 0)))


def access_line(number: int, size: int, chance: random.Random) -> str:
    """Of the combined log format; the agent string is as long as it takes."""
    address = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
    second = number // LINES_A_SECOND
    at = f"16/Nov/2026:{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d} +0000"
    request = f"GET /shop/{chance.choice(('tea', 'coffee', 'cocoa'))}/{number % 1_000_000} HTTP/1.1"
    status, sent = chance.choice((200, 200, 200, 304, 404, 500)), chance.randrange(100_000)
    line = f'{address} - - [{at}] "{request}" {status} {sent} "https://example.org/{number % 100}" "Mozilla/5.0 '
    return line + _padding(chance, size - len(line) - 2) + '"'


def json_line(number: int, size: int, chance: random.Random) -> str:
    """What a service writes: eight fields, the last as long as it takes."""
    event = {
        "at": f"2026-11-16T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.{number % 1000:03d}Z",
        "level": chance.choice(("info", "info", "warn", "error")),
        "service": chance.choice(("cart", "pay", "mail")),
        "user": chance.randrange(1_000_000),
        "ms": round(chance.uniform(1, 90), 2),
        "ok": number % 3 == 0,
        "id": number,
        "note": "",
    }
    line = json.dumps(event, separators=(",", ":"))
    return line[:-2] + _padding(chance, size - len(line) - 1) + '"}'


def text_line(number: int, size: int, chance: random.Random) -> str:
    """Begins with its number, so that one can tell which of them arrived."""
    return f"{number:012d} " + access_line(number, size - 13, chance)


LINES: Mapping[str, Callable[[int, int, random.Random], str]] = {
    "raw": access_line,
    "json": json_line,
    "access_log": access_line,
    "numbered": text_line,
}


def make_block(kind: str, line_bytes: int, block_bytes: int = BLOCK_BYTES) -> bytes:
    """Lines of exactly `line_bytes` each, the line break counted."""
    chance = random.Random(7)
    made = [LINES[kind](number, line_bytes, chance)[: line_bytes - 1] for number in range(block_bytes // line_bytes)]
    block = ("\n".join(made) + "\n").encode()
    assert len(block) == len(made) * line_bytes, f"{kind} lines of {line_bytes} bytes"
    return block


def prepare(folder: Path, kind: str, line_bytes: int, total_bytes: int, files: int) -> tuple[list[Path], int]:
    """So many files of the same length; and how many lines there are in all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    block = make_block(kind, line_bytes)
    each_lines = total_bytes // files // line_bytes
    paths = [folder / f"{number:05d}.log" for number in range(files)]
    for number, path in enumerate(paths):
        # Each begins elsewhere: files with the same beginning are hard to tell apart, and no log is another's copy.
        start = number * 97 * line_bytes % len(block)
        content = block[start:] + block[:start]
        with path.open("wb") as file:
            left = each_lines * line_bytes
            while left > 0:
                left -= file.write(content[: min(left, len(content))])
    return paths, each_lines * files
