"""Contexts for dialling: the newest at every dial, so that renewed certificates and other trust are seen."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from penstock.transport.tls.contexts import dialling_context
from penstock.transport.tls.material import stamps_of
from penstock.transport.tls.reload import LOOK_INTERVAL_MS, Stamps, looks_changed
from penstock.transport.tls.settings import BadTls, TlsSettings
from penstock.transport.tls.stores import load_key_store, load_trust_store

log = logging.getLogger("penstock.tls")

LOOK_PATIENCE_S: Final = 1.0
_GOING_ON: Final = "going on with the certificates there were: %s"

Run = Callable[..., Awaitable[Any]]
"""Runs a function off the loop: `asyncio.to_thread`, `Offload.call`."""


class ContextSource:
    """Of one loop. Settings and files are looked at again by a dial, files if the last look is ten seconds away."""

    def __init__(self, settings_now: Callable[[], TlsSettings], run: Run = asyncio.to_thread) -> None:
        self._settings_now, self._run = settings_now, run
        self._loaded: _Loaded | None = None
        self._looked_at_s = float("-inf")
        self._looking: asyncio.Future[_Loaded] | None = None

    @property
    def shows_certificate(self) -> bool:
        return self._loaded is not None and self._loaded.settings.key_store.given

    def load(self) -> None:
        """Reads the files now, where waiting for them is no harm. `BadTls` when they cannot be used."""
        self._loaded = _read(self._settings_now())

    async def context(self) -> ssl.SSLContext:
        """`BadTls` when there is none; what became unusable leaves the one there was."""
        now_s = asyncio.get_running_loop().time()
        loaded = self._loaded
        if loaded is None:
            self._looked_at_s = now_s
            self._loaded = loaded = await self._run(_read, self._settings_now())
        else:
            await self._look(loaded, now_s)
        assert self._loaded is not None, "it was read, or reading it raised"
        return self._loaded.context

    async def _look(self, loaded: _Loaded, now_s: float) -> None:
        """Waits a moment for what is there now. Files on a disk that hangs hold up no dial, and one thread only."""
        if self._looking is None:
            work = self._due(loaded, now_s)
            if work is None:
                return
            self._looking = asyncio.ensure_future(work)
            self._looking.add_done_callback(self._looked)
        await asyncio.wait({self._looking}, timeout=LOOK_PATIENCE_S)

    def _due(self, loaded: _Loaded, now_s: float) -> Awaitable[_Loaded] | None:
        try:
            settings = self._settings_now()
        except BadTls as unusable:
            log.warning(_GOING_ON, unusable)
            return None
        if settings != loaded.settings:
            return self._run(_read, settings)
        if settings.watched_paths() and now_s - self._looked_at_s >= LOOK_INTERVAL_MS / 1_000:
            self._looked_at_s = now_s
            return self._run(_read_if_changed, loaded)
        return None

    def _looked(self, look: asyncio.Future[_Loaded]) -> None:
        self._looking = None
        if look.cancelled():
            return
        failure = look.exception()
        if failure is None:
            self._loaded = look.result()
        else:
            log.warning(_GOING_ON, failure)


class _Loaded(NamedTuple):
    """A context and what it was made of."""

    settings: TlsSettings
    stamps: Stamps
    context: ssl.SSLContext


def _read(settings: TlsSettings) -> _Loaded:
    stamps = stamps_of(settings.watched_paths())
    key_store, trust_store = load_key_store(settings.key_store), load_trust_store(settings.trust_store)
    return _Loaded(settings, stamps, dialling_context(settings, key_store, trust_store))


def _read_if_changed(loaded: _Loaded) -> _Loaded:
    changed = looks_changed(loaded.stamps, stamps_of(loaded.settings.watched_paths()))
    return _read(loaded.settings) if changed else loaded
