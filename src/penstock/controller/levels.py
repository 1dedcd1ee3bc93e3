"""UpdateFeatures: raising and lowering what the cluster runs at. All of a request happens, or nothing of it."""

from __future__ import annotations

from typing import Final

from penstock.controller.bootstrap import min_isr_record
from penstock.controller.decision import Decision, World
from penstock.metadata import features
from penstock.metadata.entities import CONFIG_BROKER, VersionRange
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import INVALID_REQUEST, INVALID_UPDATE_VERSION, Refused
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from penstock.protocol.disk.metadata_topics import ClearElrRecord
from penstock.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3

_MIN_ISR: Final = "min.insync.replicas"


def decide_update(world: World, request: UpdateFeaturesRequest, *, api_version: int, kraft_version: int) -> Decision:
    """UpdateFeatures. The first update that cannot be made refuses the request; `validate_only` writes nothing."""
    records: list[VersionedRecord] = []
    try:
        names = [update.feature for update in request.feature_updates]
        if len(set(names)) != len(names):
            raise Refused(INVALID_REQUEST, "a feature stands twice in the request")
        for update in request.feature_updates:
            kind = update.upgrade_type
            if api_version == 0:
                kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
            records += _update(world, update.feature, update.max_version_level, kind, kraft_version)
    except Refused as refused:
        return Decision([], UpdateFeaturesResponse(error_code=refused.error.code, error_message=refused.why))
    reply = UpdateFeaturesResponse(
        error_message=None,
        results=[UpdateFeaturesResponse.UpdatableFeatureResult(feature=name, error_message=None) for name in names],
    )
    return Decision([] if request.validate_only else records, reply, "update features")


def _update(world: World, name: str, level: int, kind: int, kraft_version: int) -> list[VersionedRecord]:
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise Refused(INVALID_UPDATE_VERSION, f"upgrade type {kind} of feature {name} is not known")
    current = kraft_version if name == features.KRAFT_VERSION else world.image.features.get(name, 0)
    _check_support(world, name, level)
    if level < current and kind == UPGRADE:
        raise Refused(
            INVALID_UPDATE_VERSION,
            f"feature {name} is at {current}; lowering it to {level} has to be asked for as a downgrade",
        )
    if level > current and kind != UPGRADE:
        raise Refused(INVALID_UPDATE_VERSION, f"feature {name} is at {current}; {level} is no downgrade")
    if level == current:
        return []
    if name == features.KRAFT_VERSION:
        raise Refused(
            INVALID_UPDATE_VERSION, f"kraft.version is at {current} and is set when the quorum is formatted, not later"
        )
    if name == features.METADATA_VERSION and level < current and features.loses_metadata(current, level):
        raise Refused(
            INVALID_UPDATE_VERSION,
            f"metadata.version {features.metadata_version_text(level)} cannot hold what "
            f"{features.metadata_version_text(current)} may have written; this downgrade is not possible",
        )
    records: list[VersionedRecord] = [(FeatureLevelRecord(name=name, feature_level=level), 0)]
    if name == features.ELR_VERSION:
        records += _elr_records(world) if level > 0 else _no_elr_records(world)
    return records


def _check_support(world: World, name: str, level: int) -> None:
    """Refused unless this controller, every broker and every other controller can run `name` at `level`."""
    supports = [("this controller", features.SUPPORTED.get(name, VersionRange(0, 0)))]
    supports += [(f"broker {each.id}", each.supports(name)) for each in world.image.brokers.values()]
    others = (each for each in world.image.controllers.values() if each.id != world.settings.node_id)
    supports += [(f"controller {each.id}", dict(each.features).get(name, VersionRange(0, 0))) for each in others]
    for who, allowed in supports:
        # Level 0 means off, which everybody can do, except for metadata.version: without it there is no cluster.
        if level in allowed or (level == 0 and name != features.METADATA_VERSION):
            continue
        if allowed.max == 0:
            raise Refused(INVALID_UPDATE_VERSION, f"{who} does not support feature {name}")
        raise Refused(INVALID_UPDATE_VERSION, f"{who} supports {name} from {allowed.min} to {allowed.max}, not {level}")


def _no_elr_records(world: World) -> list[VersionedRecord]:
    """Nobody is eligible any more. Refused while a partition has nobody else who could lead it."""
    for topic_id, index in world.index.leaderless():
        topic = world.image.topics[topic_id]
        if topic.partitions[index].elr:
            raise Refused(
                INVALID_UPDATE_VERSION,
                f"{topic.name}-{index} has no leader, and only eligible replicas have its records: bring one of "
                f"brokers {list(topic.partitions[index].elr)} back first",
            )
    return [(ClearElrRecord(topic_name=""), 0)] if any(True for _ in world.index.with_eligible()) else []


def _elr_records(world: World) -> list[VersionedRecord]:
    """Eligible replicas need one minimum for the whole cluster."""
    records: list[VersionedRecord] = []
    if _MIN_ISR not in world.image.config(CONFIG_BROKER, ""):
        records.append((min_isr_record(world), 0))
    for key, values in sorted(world.image.configs.items()):
        if key.type == CONFIG_BROKER and key.name and _MIN_ISR in values:
            records.append((ConfigRecord(resource_type=key.type, resource_name=key.name, name=_MIN_ISR, value=None), 0))
    return records
