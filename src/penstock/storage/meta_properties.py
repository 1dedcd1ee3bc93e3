"""`meta.properties`: which cluster, node and directory a log directory belongs to. A Java properties file.

Opening a directory of another cluster or node would mix two sets of data, so `check_meta_properties` refuses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.model.errors import Corrupt, PenstockError
from penstock.model.ids import NodeId, Uuid, uuid_parse, uuid_text
from penstock.model.ports import Files

META_PROPERTIES = "meta.properties"
_VERSION = "1"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES = {value: "\\" + key for key, value in _ESCAPES.items()}


class WrongDirectory(PenstockError):  # noqa: N818  # exceptions here say what happened
    """The directory holds the data of another cluster or node."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The content of one file. A directory id may be missing in what an old broker left."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid | None


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """None when the directory was never formatted."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        text = files.read(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    fields = parse_java_properties(text)
    if fields.get("version") != _VERSION:
        raise Corrupt(path, 0, f"version {fields.get('version')!r} of meta.properties is unknown; expected {_VERSION}")
    try:
        directory_id = uuid_parse(fields["directory.id"]) if "directory.id" in fields else None
        return MetaProperties(fields["cluster.id"], NodeId(int(fields["node.id"])), directory_id)
    except (KeyError, ValueError) as broken:
        raise Corrupt(path, 0, f"cluster.id, node.id or directory.id is missing or malformed: {broken}") from broken


def write_meta_properties(files: Files, directory: str, meta: MetaProperties) -> None:
    fields = {"cluster.id": meta.cluster_id, "node.id": str(meta.node_id), "version": _VERSION}
    if meta.directory_id is not None:
        fields["directory.id"] = uuid_text(meta.directory_id)
    lines = [f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in sorted(fields.items())]
    files.write_atomic(f"{directory}/{META_PROPERTIES}", ("#\n" + "".join(lines)).encode())


def check_meta_properties(directory: str, found: MetaProperties, cluster_id: str, node_id: int) -> None:
    """Raises WrongDirectory when the directory is not ours."""
    if found.cluster_id != cluster_id:
        raise WrongDirectory(
            f"{directory} belongs to cluster {found.cluster_id}, this node to {cluster_id}; "
            f"point log.dirs at the right directory, or empty it to join with fresh data"
        )
    if found.node_id != node_id:
        raise WrongDirectory(
            f"{directory} belongs to node {found.node_id}, this node is {node_id}; "
            f"correct node.id or log.dirs: two nodes must not share a directory"
        )


def parse_java_properties(text: str) -> dict[str, str]:
    """Keys and values by Java's rules: comments, continued lines, `=`, `:` or blank as separator, escapes."""
    fields = {}
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", line, re.DOTALL)
        if match:
            fields[_unescape(match[1])] = _unescape(match[2])
    return fields


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        lines.append(pending)
        pending = ""
    return [*lines, pending] if pending else lines


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", plain, text, flags=re.DOTALL)


def _escape(text: str, *, key: bool = False) -> str:
    out = []
    for index, char in enumerate(text):
        if char == " ":
            out.append("\\ " if key or index == 0 else " ")
        elif char in _UNESCAPES:
            out.append(_UNESCAPES[char])
        elif char in "=:#!\\":
            out.append("\\" + char)
        elif not " " <= char <= "~":
            out.append(f"\\u{ord(char):04X}")
        else:
            out.append(char)
    return "".join(out)
