"""May a renewed certificate take the old one's place? And is it time to look, or to warn? Decisions only.

As in Kafka a running listener keeps its identity: a new certificate has the same subject and at least the same
alternative names, unless the settings allow otherwise; a store is neither added nor taken away. Trust may change
freely. Other than Kafka's, no listener takes a certificate that has ended in place of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.transport.tls.settings import TlsSettings
from penstock.transport.tls.stores import KeyStore, TrustStore

LOOK_INTERVAL_MS: Final = 10_000
"""How often files are looked at: whoever renews certificates by a tool does not tell us."""

WARNING_DAYS: Final = (30, 7, 1)
_DAY_MS: Final = 86_400_000


class Identity(NamedTuple):
    """What a certificate says of its owner, as far as a listener may not change it, and until when."""

    subject: bytes
    """DER."""
    alternative_names: frozenset[str]
    """As `DNS:broker-1`, `IP:10.0.0.1`."""
    not_after_ms: int


class Stamp(NamedTuple):
    """How a file looked. A link that points elsewhere now is another file."""

    device: int
    inode: int
    size: int
    changed_ns: int


Stamps = Mapping[str, Stamp | None]
"""By path; None where there is no file."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a context was made of."""

    key_store: KeyStore | None
    trust_store: TrustStore | None
    identity: Identity | None
    """Of the key store's certificate."""


def objection(old: Material, new: Material, settings: TlsSettings, *, now_ms: int) -> str:
    """Why the new material may not take the old one's place; empty when it may."""
    for name, before, after in (
        ("key store", old.key_store, new.key_store),
        ("trust store", old.trust_store, new.trust_store),
    ):
        if before is None and after is not None:
            return f"a {name} cannot be added to a listener that runs"
        if before is not None and after is None:
            return f"the {name} cannot be taken from a listener that runs"
    if old.identity is None or new.identity is None:
        return ""
    if old.identity.subject != new.identity.subject and not settings.allow_dn_changes:
        return "the new certificate has another subject; ssl.allow.dn.changes would allow that"
    missing = sorted(old.identity.alternative_names - new.identity.alternative_names)
    if missing and not settings.allow_san_changes:
        return f"the new certificate lacks {', '.join(missing)}; ssl.allow.san.changes would allow that"
    # One that was there already may have ended: its trust store can still change.
    if old.key_store != new.key_store and expired(new.identity, now_ms):
        return "the new certificate has ended"
    return ""


def expired(identity: Identity, now_ms: int) -> bool:
    return identity.not_after_ms <= now_ms


def days_left(identity: Identity, now_ms: int) -> int:
    """Whole days until a certificate ends; negative when it has."""
    return (identity.not_after_ms - now_ms) // _DAY_MS


def warning_due(identity: Identity, now_ms: int, warned_at_days: int | None) -> int | None:
    """The threshold (30, 7 or 1 days, or 0 for the end itself) to warn of now, if nobody has warned of it yet."""
    left = days_left(identity, now_ms)
    crossed = 0 if expired(identity, now_ms) else min((each for each in WARNING_DAYS if left < each), default=None)
    if crossed is None or (warned_at_days is not None and warned_at_days <= crossed):
        return None
    return crossed


def looks_changed(before: Stamps, now: Stamps) -> bool:
    """Whether a store should be read again. A file that is away for a moment is being replaced: not yet."""
    return any(stamp is not None and stamp != before.get(path) for path, stamp in now.items())
