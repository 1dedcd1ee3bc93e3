"""What sinks and pipelines call: beginning with a checkpoint, and keeping it before a batch is committed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from penstock.spark.checkpoints.local import LocalCheckpoint
from penstock.spark.checkpoints.mirror import Mirror
from penstock.spark.checkpoints.objects import Objects
from penstock.spark.errors import BadOption
from penstock.spark.naming import MIRROR_OPTION
from penstock.spark.stores.settings import kind_of
from penstock.spark.stores.storage import Storage


def is_mirrored(place: str) -> bool:
    """Whether Spark cannot open it, and it is copied there instead."""
    return kind_of(place) is not None


def begin(local: str, place: str, storage: Mapping[str, str]) -> str:
    """The checkpoint in `local` is the newest there is; the option with which a sink keeps it."""
    holder = mirror_of(local, place, storage).begin()
    return json.dumps({"place": place, "holder": holder, "storage": dict(storage)})


def keep(local: str, option: str) -> None:
    """Before a batch is committed: then whoever comes next, wherever, finds what that batch has read. Nothing to do
    for a checkpoint without copies."""
    if not option:
        return
    try:
        told = json.loads(option)
        place, holder, storage = str(told["place"]), str(told["holder"]), dict(told["storage"])
    except (ValueError, KeyError, TypeError):
        raise BadOption(f"option {MIRROR_OPTION} is not for people: pipelines set it") from None
    mirror_of(local, place, storage).send(holder)


def forget(local: str, place: str, storage: Mapping[str, str]) -> None:
    """The checkpoint is gone, here and there."""
    objects = Objects.at(place, Storage.of(storage))
    LocalCheckpoint(local).removed()
    objects.delete(objects.names(""))


def mirror_of(local: str, place: str, storage: Mapping[str, str]) -> Mirror:
    return Mirror(LocalCheckpoint(local), Objects.at(place, Storage.of(storage)))
