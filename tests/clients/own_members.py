"""Members of consumer groups with Penstock's own client, classic and new protocol."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import Consumer
from penstock.client.errors import CommitFailed
from penstock.model.errors import ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS
from tests.clients.members import COMMIT_EVERY, HEARTBEAT_MS, POLL_MS, SESSION_MS, Member
from tests.patience import within


class OwnMember(Member):
    """The classic protocol with the range assignor."""

    def settings(self) -> dict[str, Any]:
        return {
            "session_timeout_ms": within(SESSION_MS),
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "partition_assignment_strategy": ("range",),
        }

    def read(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        async with Consumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            client_id=self.name,
            offset_reset="earliest",
            enable_auto_commit=False,
            **self.settings(),
        ) as consumer:

            async def commit(_revoked: object = None) -> None:
                await consumer.commit()

            consumer.subscribe(self.topics, on_revoked=commit)
            pending = False
            while self.staying or pending:
                records = await consumer.poll(max_records=COMMIT_EVERY, timeout_ms=POLL_MS)
                self.owned = frozenset(consumer.assignment())
                for record in records:
                    self.took(record.value)
                pending = pending or bool(records)
                if pending:
                    try:
                        await consumer.commit()
                        pending = False
                    except CommitFailed as refusal:
                        # In the midst of a rebalance: tried again, unless what was given up was committed on the way.
                        if refusal.error not in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION):
                            raise


class OwnCooperativeMember(OwnMember):
    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "partition_assignment_strategy": ("cooperative-sticky",)}


class OwnNewMember(OwnMember):
    def settings(self) -> dict[str, Any]:
        return {"group_protocol": "consumer"}


OWN_MEMBERS: dict[str, type[Member]] = {
    "penstock": OwnMember,
    "penstock cooperative": OwnCooperativeMember,
    "penstock consumer protocol": OwnNewMember,
}
