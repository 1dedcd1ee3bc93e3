"""`meta.properties`: which cluster, node and directory a log directory belongs to. A Java properties file.

Opening a directory of another cluster or node would mix two sets of data, so `check_meta_properties` refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.config.files import parse_properties, write_properties
from penstock.model.errors import Corrupt, PenstockError
from penstock.model.ids import NodeId, Uuid, uuid_parse, uuid_text
from penstock.model.ports import Files

META_PROPERTIES = "meta.properties"
_VERSION = "1"


class WrongDirectory(PenstockError):
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
    try:
        fields = parse_properties(text)
    except ValueError as broken:
        raise Corrupt(path, 0, str(broken)) from broken
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
    text = "#\n" + write_properties(dict(sorted(fields.items())))
    files.write_atomic(f"{directory}/{META_PROPERTIES}", text.encode())


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
