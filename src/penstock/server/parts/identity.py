"""Who a node is, as its disk says: the cluster, its number in it, and the id of its metadata directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.model.config import BrokerSettings
from penstock.model.errors import PenstockError
from penstock.model.ids import new_uuid
from penstock.storage.meta_properties import read_meta_properties

if TYPE_CHECKING:
    from random import Random

    from penstock.model.ids import Uuid
    from penstock.model.ports import Files
    from penstock.server.reception.listener import Listeners

NOT_FORMATTED: Final = "has no meta.properties; run `penstock server format --config FILE` first"


class Identity(NamedTuple):
    """What a formatted metadata directory says."""

    cluster_id: str
    directory_id: Uuid


def read_identity(files: Files, settings: BrokerSettings, random: Random) -> Identity:
    """PenstockError when the directory is not formatted, or belongs to another node."""
    directory = settings.metadata_log_dir
    found = read_meta_properties(files, directory)
    if found is None:
        raise PenstockError(f"{directory} {NOT_FORMATTED}")
    if found.node_id != settings.node_id:
        raise PenstockError(f"{directory} belongs to node {found.node_id}, not to {settings.node_id}")
    return Identity(found.cluster_id, found.directory_id or new_uuid(random))


def bound_settings(settings: BrokerSettings, listeners: Listeners) -> BrokerSettings:
    """The settings with real ports where a free one was asked for, because voter sets and registrations name them."""
    bound = ",".join(f"{each.endpoint.name}://{each.endpoint.host}:{each.info.port}" for each in listeners)
    return BrokerSettings.load({**settings.properties, "listeners": bound})
