"""The clients that act as one person: made when they are first needed, closed when that person goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.console.settings import ClusterAddress

ANSWER_WITHIN_MS: Final = 15_000
"""A page had rather say that a broker is silent than wait a minute for it."""


class Acting:
    """One person at one cluster. `login` are the keywords that say who it is, in place of the console's own."""

    def __init__(self, address: ClusterAddress, login: Mapping[str, Any] | None = None) -> None:
        self.address, self._login = address, login or {}
        self._admin: Admin | None = None

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            patience = {"request_timeout_ms": ANSWER_WITHIN_MS, "default_api_timeout_ms": ANSWER_WITHIN_MS}
            self._admin = Admin(**{**patience, **self.address.admin, **self._login})
        return self._admin

    @property
    def consumer_keywords(self) -> dict[str, Any]:
        return {**self.address.consumer, **self._login}

    @property
    def producer_keywords(self) -> dict[str, Any]:
        return {**self.address.producer, **self._login}

    async def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()
