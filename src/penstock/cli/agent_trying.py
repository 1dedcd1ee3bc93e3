"""`penstock agent test`: the records that sample lines become, printed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from penstock.agent.settings import AgentSettings, InputSettings
    from penstock.agent.trying import Tried


FROM_FILES: Final = ("tail", "spooldir")
PEER: Final = "127.0.0.1"


def show_tried(settings: AgentSettings, name: str | None, lines: IO[bytes], style: str) -> None:
    """Prints record after record; at the end, on standard error, how many there were of which kind."""
    from penstock.agent.trying import try_lines

    chosen = settings.inputs[chosen_input(settings, name)]
    plain = (line.rstrip(b"\r\n") for line in lines)
    path, peer = _origin(chosen, lines)
    sent = dead = left_out = 0
    for tried in try_lines(settings, chosen.name, plain, path=path, peer=peer):
        left_out, dead, sent = left_out + tried.filtered, dead + tried.dead, sent + (not tried.filtered)
        if style == "json":
            click.echo(json.dumps(data_of(tried), ensure_ascii=False))
        else:
            click.echo("\n".join(text_of(tried)))
    counted = [f"{sent} record{'' if sent == 1 else 's'}"]
    counted += [f"{dead} of them dead letters"] if dead else []
    counted += [f"{left_out} left out"] if left_out else []
    click.echo(", ".join(counted), err=True)


def _origin(chosen: InputSettings, lines: IO[bytes]) -> tuple[str, str]:
    """Path and peer, as if the sample were the file, or its reader the sender."""
    if chosen.kind not in FROM_FILES:
        return "", PEER
    named = isinstance(lines.name, str) and lines.name != "<stdin>"
    return str(Path(lines.name).absolute()) if named else "", ""


def chosen_input(settings: AgentSettings, name: str | None) -> str:
    """The only one there is, or the one that was named."""
    from penstock.declared.mistakes import did_you_mean

    names = list(settings.inputs)
    if name is None:
        if len(names) > 1:
            raise click.UsageError(f"which input did it come through? --input with one of {', '.join(names)}")
        return names[0]
    if name not in names:
        words = f"{settings.name} has no input {name!r}{did_you_mean(name, names)}"
        raise click.BadParameter(words, param_hint="--input")
    return name


def text_of(tried: Tried) -> Iterator[str]:
    """A line that says where it goes, below it the value, then headers and what went wrong."""
    if tried.filtered:
        yield f"– left out{f' by {tried.why}' if tried.why else ''}: {_shown(tried.line)}"
        return
    key = "" if tried.key is None else f"  key {_shown(tried.key)}"
    at = "" if tried.timestamp_ms is None else f"  at {_moment(tried.timestamp_ms)}"
    yield f"→ {tried.topic}{key}{at}"
    yield "\n".join(f"  {line}" for line in _shown(tried.value).split("\n"))
    headers = "  ".join(f"{name}: {_shown(value)}" for name, value in tried.headers)
    if headers:
        yield f"  {headers}"


def data_of(tried: Tried) -> dict[str, Any]:
    if tried.filtered:
        return {"line": _plain(tried.line), "filtered": True, "why": tried.why}
    return {
        "line": _plain(tried.line),
        "topic": tried.topic,
        "key": _plain(tried.key),
        "value": _plain(tried.value),
        "headers": {name: _plain(value) for name, value in tried.headers},
        "timestamp_ms": tried.timestamp_ms,
        "dead": tried.dead,
    }


def _plain(value: bytes | None) -> Any:
    """Text if it is text; else its bytes, marked."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _shown(value: bytes) -> str:
    text = value.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
