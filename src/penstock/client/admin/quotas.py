"""Limits of users, client ids and addresses: list and change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.client.admin.session import Results, Session, check, gathered, refused
from penstock.client.errors import ClientError
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

DEFAULT: Final = ""
"""Stands for whoever has no limit of its own: names are never empty."""

_FIELDS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}
_EXACT, _DEFAULT = 0, 1


@dataclass(frozen=True, slots=True, order=True)
class QuotaEntity:
    """What limits are set on: a user, a client id, both together, or an address. "" is the default of its kind."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @property
    def parts(self) -> dict[str, str]:
        """The kinds that it has, with their names, as the protocol calls them."""
        named = {kind: getattr(self, field) for kind, field in _FIELDS.items()}
        return {kind: name for kind, name in named.items() if name is not None}

    def __str__(self) -> str:
        return ", ".join(f"{kind} {name or 'default'}" for kind, name in self.parts.items()) or "everybody"


async def describe_quotas(
    session: Session, which: QuotaEntity | None, *, strict: bool
) -> dict[QuotaEntity, dict[str, float]]:
    """The limits of entities that have all the parts of `which`; of all for None."""
    made = DescribeClientQuotasRequest
    request = made(
        components=[
            made.ComponentData(entity_type=kind, match_type=_EXACT if name else _DEFAULT, match=name or None)
            for kind, name in (which.parts if which is not None else {}).items()
        ],
        strict=strict,
    )

    async def ask() -> DescribeClientQuotasResponse:
        reply: DescribeClientQuotasResponse = await session.any(request)
        check(reply.error_code, reply.error_message, "listing limits")
        return reply

    return {
        _entity({part.entity_type: part.entity_name for part in entry.entity}): {
            value.key: value.value for value in entry.values
        }
        for entry in (await session.patient(ask)).entries or ()
    }


async def alter_quotas(
    session: Session, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool
) -> Results[QuotaEntity, None]:
    """Sets limits; None takes one away."""
    made = AlterClientQuotasRequest

    async def ask(pending: list[QuotaEntity]) -> Mapping[QuotaEntity, ClientError | None]:
        request = made(
            entries=[
                made.EntryData(
                    entity=[
                        made.EntityData(entity_type=kind, entity_name=name or None)
                        for kind, name in entity.parts.items()
                    ],
                    ops=[
                        made.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                        for key, value in changes[entity].items()
                    ],
                )
                for entity in pending
            ],
            validate_only=validate_only,
        )
        reply = await session.any(request)
        outcomes: dict[QuotaEntity, ClientError | None] = {}
        for entry in reply.entries:
            entity = _entity({part.entity_type: part.entity_name for part in entry.entity})
            failure = refused(entry.error_code, entry.error_message, f"the limits of {entity}")
            outcomes[entity] = failure if entry.error_code else None
        return outcomes

    return await session.settled(changes, lambda pending: gathered(lambda: ask(pending), pending))


def _entity(parts: Mapping[str, str | None]) -> QuotaEntity:
    return QuotaEntity(**{_FIELDS[kind]: name or DEFAULT for kind, name in parts.items() if kind in _FIELDS})
