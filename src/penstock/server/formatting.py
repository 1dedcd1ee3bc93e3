"""Makes empty directories into the log directories of a node, as `kafka-storage format` does.

Each log directory gets a `meta.properties` with an id of its own and a `bootstrap.checkpoint` with the feature
levels a new cluster starts from. The metadata directory of a controller gets the snapshot 0-0 that names the voters:
this node alone, or all controllers that the cluster starts with. A directory that has a `meta.properties` is left as it
is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.metadata.features import NEW_CLUSTER, NEW_CLUSTER_KRAFT_VERSION, bootstrap_levels
from penstock.model.errors import PenstockError
from penstock.model.ids import METADATA_TOPIC, Epoch, Millis, NodeId, Offset, Uuid, new_uuid, uuid_text
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from penstock.protocol.disk.raft_records import VotersRecord
from penstock.server.controller.initial_controllers import voter_entry
from penstock.server.quorum.snapshot_file import BOOTSTRAP_CHECKPOINT, CheckpointWriter, SnapshotId
from penstock.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties

if TYPE_CHECKING:
    from penstock.metadata.records import VersionedRecord
    from penstock.model.config.endpoints import Endpoint
    from penstock.model.config.settings import BrokerSettings
    from penstock.model.ids import Randomness
    from penstock.model.ports import Clock, Files

METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"


class AlreadyFormatted(PenstockError):
    """A directory has a `meta.properties` and the caller did not ask to skip such directories."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """What the directories are now."""

    cluster_id: str
    directory_ids: dict[str, Uuid]
    made: tuple[str, ...]
    """The directories that were empty before."""


def new_cluster_id(random: Randomness) -> str:
    """Twenty-two characters of base64url."""
    return uuid_text(new_uuid(random))


def format_directories(
    files: Files,
    log_dirs: Sequence[str],
    metadata_dir: str,
    cluster_id: str | None,
    node_id: NodeId,
    settings: BrokerSettings,
    random: Randomness,
    *,
    now: Millis,
    ignore_formatted: bool = True,
    levels: Mapping[str, int] = NEW_CLUSTER,
    standalone: bool = True,
    voters: VotersRecord | None = None,
    own_host: str = "localhost",
    records: Sequence[VersionedRecord] = (),
) -> Formatted:
    """Formats every directory that is not formatted yet; calling it twice changes nothing.

    `cluster_id` None takes the id the directories have, or a new one. `voters` are the controllers of a new cluster;
    when this node is among them, its metadata directory gets the id that they know it by. Without them `standalone`
    writes the voter set with this node alone; a node that joins a quorum, or whose voters are given in its
    configuration, has none. `own_host` is what a controller listener on all interfaces is called. A new cluster starts
    with `records` beside its feature levels: its first users.
    """
    directories = list(dict.fromkeys((*log_dirs, metadata_dir)))
    known = {directory: read_meta_properties(files, directory) for directory in directories}
    taken = {directory: meta for directory, meta in known.items() if meta is not None}
    if taken and not ignore_formatted:
        raise AlreadyFormatted(f"{min(taken)} is formatted already; pass --ignore-formatted to format only the others")
    cluster_id = _one_cluster(taken, cluster_id, node_id) or new_cluster_id(random)
    ids = {directory: meta.directory_id or new_uuid(random) for directory, meta in taken.items()}
    made = [directory for directory in directories if directory not in taken]
    for directory in made:
        ids[directory] = new_uuid(random)
        _make_directory(files, directory)
        files.write_atomic(f"{directory}/{BOOTSTRAP_CHECKPOINT}", _bootstrap(levels, records, now))
        if directory != metadata_dir or not settings.is_controller:
            continue
        known_as = {each.voter_id: each.voter_directory_id for each in voters.voters} if voters is not None else {}
        ids[directory] = known_as.get(node_id, ids[directory])
        if voters is None and standalone and not settings.quorum_voters:
            voters = only_voter(node_id, ids[directory], settings.advertised_controller_listeners, own_host)
        if voters is not None:
            _write_voters(files, metadata_dir, voters, now)
    # meta.properties goes last: a directory that has one is whole, whenever the power fails.
    for directory in made:
        write_meta_properties(files, directory, MetaProperties(cluster_id, node_id, ids[directory]))
    return Formatted(cluster_id, ids, tuple(made))


def _make_directory(files: Files, directory: str) -> None:
    """A name is durable when the directory that holds it is synced, and so on upwards for every new one."""
    missing = directory.rstrip("/")
    parents = []
    while missing and not files.exists(missing):
        missing = missing.rpartition("/")[0]
        parents.append(missing or ("/" if directory.startswith("/") else "."))
    files.makedirs(directory)
    for parent in parents:
        files.sync_dir(parent)


def _one_cluster(taken: Mapping[str, MetaProperties], cluster_id: str | None, node_id: NodeId) -> str | None:
    for directory, meta in sorted(taken.items()):
        if cluster_id is None:
            cluster_id = meta.cluster_id
        if meta.cluster_id != cluster_id:
            raise AlreadyFormatted(f"{directory} belongs to cluster {meta.cluster_id}, not to {cluster_id}")
        if meta.node_id != node_id:
            raise AlreadyFormatted(f"{directory} belongs to node {meta.node_id}, not to {node_id}")
    return cluster_id


def bootstrap_records(levels: Mapping[str, int] = NEW_CLUSTER) -> list[VersionedRecord]:
    """The feature levels a new cluster starts with."""
    return [(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in bootstrap_levels(levels)]


def _bootstrap(levels: Mapping[str, int], records: Sequence[VersionedRecord], now: Millis) -> bytes:
    writer = CheckpointWriter(Epoch(0), now)
    return writer.header(Millis(0)) + writer.data([*bootstrap_records(levels), *records]) + writer.footer()


def _write_voters(files: Files, metadata_dir: str, voters: VotersRecord, now: Millis) -> None:
    directory = f"{metadata_dir}/{METADATA_DIRECTORY}"
    _make_directory(files, directory)
    writer = CheckpointWriter(Epoch(0), now)
    data = writer.header(now, NEW_CLUSTER_KRAFT_VERSION, voters) + writer.footer()
    files.write_atomic(f"{directory}/{SnapshotId(Offset(0), Epoch(0)).file_name}", data)


def only_voter(node_id: NodeId, directory_id: Uuid, endpoints: Sequence[Endpoint], own_host: str) -> VotersRecord:
    """The voter set of a quorum of one."""
    reached = [(endpoint.name, endpoint.host or own_host, endpoint.port) for endpoint in endpoints]
    return VotersRecord(voters=[voter_entry(node_id, directory_id, reached)])


def format_for(
    settings: BrokerSettings,
    *,
    files: Files,
    clock: Clock,
    random: Randomness,
    own_host: str,
    cluster_id: str | None = None,
    ignore_formatted: bool = True,
    standalone: bool = True,
    voters: VotersRecord | None = None,
    records: Sequence[VersionedRecord] = (),
) -> Formatted:
    """Formats the directories that `settings` name, as far as they are not formatted yet."""
    return format_directories(
        files,
        settings.log_dirs,
        settings.metadata_log_dir,
        cluster_id,
        settings.node_id,
        settings,
        random,
        own_host=own_host,
        now=clock.now_ms(),
        ignore_formatted=ignore_formatted,
        standalone=standalone,
        voters=voters,
        records=records,
    )
