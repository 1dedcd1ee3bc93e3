"""The clients that act as one person: made when they are first needed, closed when that person goes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from penstock.client.admin import Admin, DelegationToken
from penstock.client.admin.tokens import SCRAM_MODULE
from penstock.client.errors import ClientError
from penstock.client.producer import Producer
from penstock.client.security_settings import SecuritySettings
from penstock.client.settings import AdminSettings
from penstock.console.settings import ClusterAddress

ANSWER_WITHIN_MS: Final = 15_000
"""A page had rather say that a broker is silent than wait a minute for it."""
CLOSE_WITHIN_MS: Final = 2_000
PROBED_MS: Final = 60_000
PATIENCE: Final = {"request_timeout_ms": ANSWER_WITHIN_MS, "default_api_timeout_ms": ANSWER_WITHIN_MS}
LOGIN_KEYWORDS: Final = ("username", "password", "mechanism", "sasl_mechanism", "token_provider", "sasl_jaas_config")
TOKEN_MECHANISM: Final = "SCRAM-SHA-512"
_TOKEN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HMAC: Final = re.compile(r"[A-Za-z0-9+/]{16,200}={0,2}")


def as_owner_of(token: DelegationToken) -> dict[str, Any]:
    """The keywords of a client that logs in with a token."""
    return {"sasl_jaas_config": token.jaas_config, "mechanism": TOKEN_MECHANISM}


def as_who_has(token_id: str, hmac: str) -> dict[str, Any]:
    """The same of a token that somebody shows. ValueError for words that could become others of that line."""
    if not _TOKEN_ID.fullmatch(token_id) or not _HMAC.fullmatch(hmac):
        raise ValueError("this is no delegation token")
    line = f'{SCRAM_MODULE} required username="{token_id}" password="{hmac}" tokenauth="true";'
    return {"sasl_jaas_config": line, "mechanism": TOKEN_MECHANISM}


def with_login(keywords: Mapping[str, Any], login: Mapping[str, Any]) -> dict[str, Any]:
    """Brokers are spoken to as these keywords say, by somebody else: whatever says who speaks is left out."""
    kept = {
        name: value
        for name, value in keywords.items()
        if name not in LOGIN_KEYWORDS and not name.startswith("sasl_oauthbearer")
    }
    safe = "SSL" in AdminSettings.of(_of_an_admin(keywords)).security_protocol
    return {**kept, "security_protocol": "SASL_SSL" if safe else "SASL_PLAINTEXT", **login}


def _of_an_admin(keywords: Mapping[str, Any]) -> dict[str, Any]:
    known = {each.name for each in fields(SecuritySettings)} | {"bootstrap_servers", "sasl_mechanism"}
    return {name: value for name, value in keywords.items() if name in known}


class Acting:
    """One person at one cluster. `login` says who it is, in place of the console's own login; None is the console."""

    def __init__(self, address: ClusterAddress, login: Mapping[str, Any] | None = None) -> None:
        self.address, self._login = address, login
        self._admin: Admin | None = None
        self._producer: Producer | None = None
        self._principal: str | None = None

    def _keywords(self, own: Mapping[str, Any]) -> dict[str, Any]:
        return dict(own) if self._login is None else with_login(own, self._login)

    @property
    def admin_keywords(self) -> dict[str, Any]:
        return {**PATIENCE, **self._keywords(self.address.admin)}

    @property
    def consumer_keywords(self) -> dict[str, Any]:
        return self._keywords(self.address.consumer)

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(**self.admin_keywords)
        return self._admin

    async def producer(self) -> Producer:
        """One that waits for all replicas, and not for long."""
        if self._producer is None:
            own = {"acks": "all", "delivery_timeout_ms": ANSWER_WITHIN_MS, "request_timeout_ms": ANSWER_WITHIN_MS // 2}
            self._producer = Producer(**{**own, **self._keywords(self.address.producer)})
            await self._producer.__aenter__()
        return self._producer

    async def principal(self) -> str | None:
        """Who this is to the cluster, learned by a token that ends at once; None for nobody who could have one."""
        if self._principal is None:
            try:
                token = await self.admin.create_token(max_lifetime_ms=PROBED_MS)
                self._principal = token.owner
                await self.admin.expire_token(token.hmac)
            except ClientError:
                return None
        return self._principal

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close(CLOSE_WITHIN_MS)
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()
