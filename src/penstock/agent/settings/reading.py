"""An agent's file becomes settings, or a list of everything that is wrong with it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.agent.errors import AgentFileBroken
from penstock.agent.routing.reading import read_routing
from penstock.agent.settings.kinds import KINDS, LOSSY, SPOOLED, kind_of
from penstock.agent.settings.model import AgentSettings, InputSettings, OutputSettings, SpoolSettings
from penstock.agent.settings.output import read_bootstrap, read_output
from penstock.agent.settings.producing import transaction_refusal
from penstock.agent.settings.variables import filled_in
from penstock.agent.transforms.reading import read_steps
from penstock.declared.fields import Notes, Table
from penstock.declared.mistakes import Mistake, did_you_mean, not_toml, text_of
from penstock.declared.positions import Positions

DEFAULT_ADMIN: Final = "127.0.0.1:0"
SPOOL_BYTES_MIN: Final = 1 << 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_NAME_WORDS: Final = "letters, digits, '-', '.' and '_', and a letter or digit first"
_ADDRESS = re.compile(r"(?:[^\s:]*|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Examined:
    """What reading found. `settings` is there when there are no mistakes."""

    settings: AgentSettings | None
    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...]


def read_agent(path: Path) -> AgentSettings:
    """The settings in a file; AgentFileBroken with all that is wrong. A file that cannot be opened is an OSError."""
    found = examine(text_of(path.read_bytes(), str(path)), path)
    if found.settings is None:
        raise AgentFileBroken(str(path), found.mistakes)
    return found.settings


def examine(text: str, path: Path, environ: Mapping[str, str] | None = None) -> Examined:
    """Everything that can be told from the text. `path` is where relative paths begin; it is not read."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        return Examined(None, (not_toml(str(broken), text),), ())
    notes = Notes(Positions(text))
    values = filled_in(values, os.environ if environ is None else environ, notes)
    settings = _agent(Table(values, (), notes, "the file"), path.absolute())
    mistakes = tuple(sorted(set(notes.mistakes)))
    return Examined(None if mistakes else settings, mistakes, tuple(sorted(set(notes.warnings))))


def _agent(file: Table, path: Path) -> AgentSettings:
    name = _name(file)
    state_dir = path.parent / (file.text("state_dir") or f".penstock-agent/{name or 'unnamed'}")
    host = file.text("host") or socket.gethostname()
    bootstrap = read_bootstrap(file)
    output = read_output(file)
    spool = _spool(file, state_dir)
    settings = AgentSettings(
        name=name,
        path=path,
        bootstrap=bootstrap,
        state_dir=state_dir,
        host=host,
        admin=_admin(file),
        output=output,
        spool=spool,
        inputs=_inputs(file, path.parent, host),
        exactly_once=_exactly_once(file, output),
        machine_id=_machine_id(file),
    )
    if spool is not None and settings.inputs and not any(each.kind in SPOOLED for each in settings.inputs.values()):
        kinds = ", ".join(sorted(SPOOLED))
        file.notes.warn(("spool",), f"no input uses the spool: it is for {kinds}; what is in files waits there")
    file.finish()
    return settings


def _name(file: Table) -> str:
    name = file.required_text("name", "it names the agent's state and its client id, agent-NAME")
    if name and not _NAME.fullmatch(name):
        file.wrong("name", f"name = {name!r} must be made of {_NAME_WORDS}")
    return name


def _exactly_once(file: Table, output: OutputSettings) -> bool:
    wanted = file.flag("exactly_once")
    if wanted and output.acks != "all":
        file.wrong("exactly_once", 'exactly_once = true needs acks = "all" in [output], which is the default')
    elif wanted and (words := transaction_refusal(output.kafka)):
        file.wrong("exactly_once", f"exactly_once = true does not go with output.kafka: {words}")
    return wanted


def _machine_id(file: Table) -> str | None:
    given = file.text("machine_id")
    if given is None:
        return None
    if not _NAME.fullmatch(given):
        file.wrong("machine_id", f"machine_id = {given!r} must be made of {_NAME_WORDS}")
    if file.value("exactly_once") is not True:
        words = "machine_id is for exactly_once = true, which keeps positions by machine; nothing else asks for it"
        file.notes.warn(("machine_id",), words)
    return given


def _admin(file: Table) -> str | None:
    admin = file.text("admin") or DEFAULT_ADMIN
    if admin == "off":
        return None
    found = _ADDRESS.fullmatch(admin)
    if found is None or int(found[1]) > 65_535:
        file.wrong("admin", f'admin = {admin!r} is no address: write "127.0.0.1:9645", or "off" for none')
    return admin


def _spool(file: Table, state_dir: Path) -> SpoolSettings | None:
    table = file.table("spool")
    if table is None:
        return None
    path = table.text("path")
    settings = SpoolSettings(
        path=state_dir / "spool" if path is None else state_dir / path,
        size_bytes=table.size_bytes("size", 1 << 30, low=SPOOL_BYTES_MIN),
        after_ms=table.duration_ms("after", 5_000, low=100),
    )
    table.finish()
    return settings


def _inputs(file: Table, folder: Path, host: str) -> dict[str, InputSettings]:
    shared = list(file.table_list("transforms"))
    found: dict[str, InputSettings] = {}
    for name, table in file.named_tables("inputs"):
        if not _NAME.fullmatch(name):
            table.wrong(None, f"the name of an input must be made of {_NAME_WORDS}, not {name!r}")
        settings = _input(name, table, shared, folder, host)
        if settings is not None:
            found[name] = settings
    if "inputs" not in file or not file.values["inputs"]:
        file.wrong(None, 'the file has no inputs: write [inputs.NAME] with type = "tail" and what it reads')
    elif not found and shared:
        # Nobody has looked at them, and their mistakes must not wait for the next try.
        read_steps((), shared, file.notes)
    return found


def _input(name: str, table: Table, shared: list[Table], folder: Path, host: str) -> InputSettings | None:
    kind = table.required_text("type", f"it says what is read; there is {', '.join(KINDS)}")
    if kind not in KINDS:
        if kind:
            table.wrong("type", f"type = {kind!r} is not known{did_you_mean(kind, KINDS)}")
        return None
    routing = read_routing(table)
    steps = read_steps(table.table_list("transforms"), shared, table.notes, routing)
    own = kind_of(kind).read(table, folder)
    table.finish()
    if kind in LOSSY:
        table.notes.warn((*table.path, "type"), f"{kind} inputs are lossy: {LOSSY[kind]}")
    return InputSettings(name, kind, own, routing, steps, _digest(name, table.values, shared, folder, host))


def _digest(name: str, values: Mapping[str, Any], shared: list[Table], folder: Path, host: str) -> str:
    """Of everything that an input's behaviour hangs on."""
    whole = [name, values, [table.values for table in shared], str(folder), host]
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:16]
