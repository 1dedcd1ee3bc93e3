"""AlterClientQuotas: limits of users, client ids and addresses."""

from __future__ import annotations

from collections import Counter

from penstock.controller.decision import Decision, World
from penstock.metadata.image import QuotaEntity, quota_entity
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.protocol.disk.metadata_configs import ClientQuotaRecord
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from penstock.security.quotas.entities import check_entity, check_limit


def decide_alter(world: World, request: AlterClientQuotasRequest) -> Decision:
    """AlterClientQuotas: an entity gets all of its changes or none; `validate_only` writes nothing.

    An entity that stands twice in a request is refused and stays as it is. (Kafka answers the same and makes the first
    of its changes all the same.)
    """
    entities = [
        quota_entity((part.entity_type, part.entity_name) for part in entry.entity) for entry in request.entries
    ]
    times = Counter(entities)
    reply, records = AlterClientQuotasResponse(), list[VersionedRecord]()
    for entity, entry in dict(zip(entities, request.entries, strict=True)).items():
        result = AlterClientQuotasResponse.EntryData(error_message=None, entity=_told(entity))
        reply.entries.append(result)
        try:
            if times[entity] > 1:
                raise Refused(INVALID_REQUEST, f"Ignoring duplicate entity {_words(entity)}")
            records += _changes(world, entity, entry)
        except Refused as refused:
            result.error_code, result.error_message = refused.error.code, refused.why
    return Decision([] if request.validate_only else records, reply, "alter client quotas")


def _changes(world: World, entity: QuotaEntity, entry: AlterClientQuotasRequest.EntryData) -> list[VersionedRecord]:
    """What leads from the limits of an entity to those that it shall have; unchanged ones make no record."""
    seen: set[str] = set()
    for op in entry.ops:
        if op.key in seen:
            raise Refused(
                INVALID_REQUEST, f"Duplicate quota key {op.key} not updating quota for this entity {_words(entity)}"
            )
        seen.add(op.key)
    check_entity(entity)
    current = world.image.quotas.get(entity, {})
    records: list[VersionedRecord] = []
    for op in entry.ops:
        if op.remove:
            if op.key in current:
                records.append(world.versioned(ClientQuotaRecord(entity=_parts(entity), key=op.key, remove=True)))
            continue
        check_limit(entity, op.key, op.value)
        if current.get(op.key) != op.value:
            records.append(world.versioned(ClientQuotaRecord(entity=_parts(entity), key=op.key, value=op.value)))
    return records


def _parts(entity: QuotaEntity) -> list[ClientQuotaRecord.EntityData]:
    return [ClientQuotaRecord.EntityData(entity_type=type, entity_name=name) for type, name in entity]


def _told(entity: QuotaEntity) -> list[AlterClientQuotasResponse.EntityData]:
    return [AlterClientQuotasResponse.EntityData(entity_type=type, entity_name=name) for type, name in entity]


def _words(entity: QuotaEntity) -> str:
    return ", ".join(f"{type}={'<default>' if name is None else name}" for type, name in entity)
