"""TLS of one listener: its context, which is made anew when files or settings change, and what becomes of handshakes.

Imported only by listeners that have TLS: this loads OpenSSL.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.security.der import name_of, subject_of
from penstock.security.name_rules import NameRules
from penstock.security.names import rfc2253
from penstock.server.doors import ANONYMOUS, Principal
from penstock.server.loops.duty import duty
from penstock.server.securing import tls_settings
from penstock.transport.net import plain_host
from penstock.transport.tls.contexts import dialling_context, listening_context
from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.material import load_material, stamps_of
from penstock.transport.tls.reload import LOOK_INTERVAL_MS, days_left, looks_changed, objection, warning_due
from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.stream import Behind, TlsShared, TlsStream, TlsTerms
from penstock.transport.tls.trial import try_handshake

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Offload
    from penstock.server.logs import Sparing
    from penstock.server.reception.strangers import Strangers
    from penstock.transport.tls.layer import TlsLayer
    from penstock.transport.tls.reload import Material, Stamps
    from penstock.transport.tls.settings import TlsSettings

_log = logging.getLogger("penstock.server.tls")

MAPPING_RULES: Final = "ssl.principal.mapping.rules"


@dataclass(frozen=True, slots=True)
class Made:
    """A context, what it was made of, and how the files looked just before."""

    settings: TlsSettings
    stamps: Stamps
    material: Material
    context: ssl.SSLContext


def make(settings: TlsSettings) -> Made:
    """Reads the stores. `BadTls` when a listener cannot be served with them."""
    stamps = stamps_of(settings.watched_paths())
    material = load_material(settings)
    return Made(settings, stamps, material, listening_context(settings, material.key_store, material.trust_store))


def make_instead(old: Made, settings: TlsSettings, *, between_nodes: bool, now_ms: int) -> Made:
    """What may take the place of `old` on a listener that runs; `BadTls` when it may not."""
    new = make(settings)
    why = objection(old.material, new.material, settings, now_ms=now_ms)
    if why:
        raise BadTls(why)
    if between_nodes:
        _try_both(old, new)
    return new


def _try_both(old: Made, new: Made) -> None:
    """Nodes that have the new certificate already and nodes that have not must get along."""
    for server, client in ((old, new), (new, old)):
        # Whom a certificate names was compared before; here is nobody who was dialled.
        dialling = replace(client.settings, checks_host=False)
        try:
            try_handshake(
                server.context, dialling_context(dialling, client.material.key_store, client.material.trust_store), None
            )
        except TlsFailure as failure:
            raise BadTls(f"nodes with the old and the new certificate would not get along: {failure.why}") from None


class TlsDoor:
    """Made before anything is bound; `open` when its listener begins to serve."""

    def __init__(self, settings: BrokerSettings, listener_name: str) -> None:
        """Raises `BadTls`, or `BadRules` when the mapping rules mean nothing."""
        self._name = listener_name
        self._settings = settings
        self._between_nodes = listener_name in (
            settings.inter_broker_listener_name,
            *settings.controller_listener_names,
        )
        self._made = make(tls_settings(settings, listener_name))
        rules = settings.for_listener(listener_name, MAPPING_RULES)
        self._rules = NameRules(rules if isinstance(rules, str) else None)
        self._terms: TlsTerms | None = None
        self._watch: asyncio.Task[None] | None = None
        self._looks: set[asyncio.Task[None]] = set()
        self._entering: dict[TlsStream, None] = {}
        self._warned_at_days: int | None = None
        self._changing = asyncio.Lock()
        self.handshakes = 0
        self.failures: dict[Kind, int] = {}

    @property
    def not_after_ms(self) -> int:
        """When the certificate ends, in wall time."""
        identity = self._made.material.identity
        assert identity is not None, "a listener shows a certificate"
        return identity.not_after_ms

    # Life.

    def open(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        offload: Offload,
        settings: BrokerSettings,
        strangers: Strangers,
        sparing: Sparing,
    ) -> None:
        """`settings` are those in force from now on: they follow dynamic configs."""
        self._clock, self._offload, self._settings = clock, offload, settings
        self._strangers, self._sparing = strangers, sparing
        self._terms = TlsTerms(TlsShared(loop), self._made.context, self._told, server_side=True)
        self._watch = duty(self._keep_looking(), name=f"certificates of {self._name}")

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        for look in self._looks:
            look.cancel()
        for stream in list(self._entering):
            stream.abort()

    def accept(self, make_connection: Callable[[], Behind]) -> TlsStream:
        assert self._terms is not None, "nobody is accepted before it is open"
        return _Entering(self._terms, make_connection, self._strangers, self._entering)

    # Who comes.

    def principal_of(self, transport: asyncio.BaseTransport) -> Principal:
        """Whom the client's certificate means. `NoRuleApplies` or `NotDer` when that is nobody."""
        layer: TlsLayer | None = transport.get_extra_info("tls_layer")
        certificate = None if layer is None else layer.peer_certificate
        if certificate is None:
            return ANONYMOUS
        return Principal("User", self._rules.user_of(rfc2253(name_of(subject_of(certificate).content))))

    def _told(self, stream: TlsStream, failure: TlsFailure | None) -> None:
        assert isinstance(stream, _Entering), "this listener made it"
        if failure is None:
            self.handshakes += 1
            stream.leave()
            return
        self.failures[failure.kind] = self.failures.get(failure.kind, 0) + 1
        self._sparing.warning(
            f"tls {stream.client_host} {failure.kind}",
            "the connection from %s on %s is closed: %s",
            stream.client_host,
            self._name,
            failure.why,
        )

    # New certificates.

    async def _keep_looking(self) -> None:
        while True:
            self._warn_of_end()
            await asyncio.sleep(LOOK_INTERVAL_MS / 1_000)
            await self.look()

    def settings_changed(self) -> None:
        if self._watch is not None:
            self._looks.add(look := duty(self.look(), name=f"a look at the certificates of {self._name}"))
            look.add_done_callback(self._looks.discard)

    async def look(self) -> None:
        """Makes a new context if settings or files have changed; what cannot be used leaves the old one."""
        async with self._changing:
            try:
                settings = self._with_stores_of(self._settings)
                stamps = await self._offload.call(stamps_of, settings.watched_paths())
                if settings == self._made.settings and not looks_changed(self._made.stamps, stamps):
                    return
                await self._change(settings)
            except BadTls as unusable:
                _log.error("listener %s goes on with the certificate it has: %s", self._name, unusable)

    async def check(self, settings: BrokerSettings) -> None:
        """`BadTls` when the stores that these settings name could not take the place of those in use."""
        async with self._changing:
            wanted = self._with_stores_of(settings)
            await self._instead(wanted)

    def _with_stores_of(self, settings: BrokerSettings) -> TlsSettings:
        """Of what a listener has only its stores may change while it runs, as in Kafka."""
        wanted = tls_settings(settings, self._name)
        return replace(self._made.settings, key_store=wanted.key_store, trust_store=wanted.trust_store)

    async def _instead(self, settings: TlsSettings) -> Made:
        make_now = partial(make_instead, between_nodes=self._between_nodes, now_ms=self._clock.now_ms())
        return await self._offload.call(make_now, self._made, settings)

    async def _change(self, settings: TlsSettings) -> None:
        assert self._terms is not None, "it is open"
        old = self._made
        try:
            self._made = await self._instead(settings)
        except BadTls:
            # Not tried again, and told again, before something changes once more.
            stamps = await self._offload.call(stamps_of, settings.watched_paths())
            self._made = replace(old, stamps=stamps)
            raise
        self._terms.context = self._made.context
        self._warned_at_days = None
        _log.info("listener %s has read its certificates anew; new connections see them", self._name)

    def _warn_of_end(self) -> None:
        identity = self._made.material.identity
        assert identity is not None, "a listener shows a certificate"
        now_ms = self._clock.now_ms()
        due = warning_due(identity, now_ms, self._warned_at_days)
        if due is None:
            return
        self._warned_at_days = due
        left = days_left(identity, now_ms)
        when = "has ended" if due == 0 else f"ends in {left} day{'' if left == 1 else 's'}"
        _log.warning("the certificate of listener %s %s; renew it", self._name, when)


class _Entering(TlsStream):
    """A client in its handshake: a stranger until that is done."""

    __slots__ = ("_counted", "_entering", "_strangers", "client_host")

    def __init__(
        self,
        terms: TlsTerms,
        make: Callable[[], Behind],
        strangers: Strangers,
        entering: dict[TlsStream, None],
    ) -> None:
        super().__init__(terms, make)
        self._strangers, self._entering = strangers, entering
        self._counted = False
        self.client_host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.client_host = plain_host((transport.get_extra_info("peername") or ("", 0))[0])
        self._counted = self._strangers.enter(self.client_host)
        self._entering[self] = None
        super().connection_made(transport)
        if not self._counted:
            self.abort()

    def leave(self) -> None:
        self._entering.pop(self, None)
        if self._counted:
            self._counted = False
            self._strangers.leave(self.client_host)

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        super().connection_lost(exc)
