"""Charging clients: one table for the node, one meter for each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.security.quotas.buckets import Buckets
from penstock.security.quotas.entities import CONNECTION_CREATION_RATE, CONTROLLER_MUTATION_RATE, REQUEST_PERCENTAGE
from penstock.security.quotas.limits import NO_LIMITS, Limit, Limits
from penstock.security.quotas.rate import WINDOW_MS, WINDOWS, RateBucket
from penstock.security.quotas.tokens import TokenBucket

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage


class ClientQuotas:
    """The limits of the cluster and what clients of this node used of them. `version` moves with the limits."""

    __slots__ = ("burst_s", "connections", "limits", "mutations", "rates", "short_pause_ms_max", "version")

    def __init__(self, window_ms: int = WINDOW_MS, windows: int = WINDOWS) -> None:
        self.limits: Limits = NO_LIMITS
        self.rates = Buckets(lambda limit, now_ms: RateBucket(limit, now_ms, window_ms, windows))
        self.connections = Buckets(lambda limit, now_ms: RateBucket(limit, now_ms, window_ms, windows))
        self.mutations = Buckets(lambda limit, now_ms: TokenBucket(limit, now_ms, window_ms, windows))
        self.burst_s = (windows - 1) * window_ms / 1_000
        """For how long a limit's worth may be used at once without a pause."""
        self.short_pause_ms_max = window_ms
        """The longest pause for time and for new connections: one window. Pauses for bytes have no bound."""
        self.version = 0

    def load(self, image: ClusterImage) -> None:
        """Takes the limits of an image. What was used stays: a limit that changes is no pardon."""
        self.limits = Limits(image.quotas)
        self.version += 1

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """As `load`, when quotas changed."""
        if delta.quotas:
            self.load(image)

    @property
    def limited(self) -> bool:
        """Whether there is any limit that a broker charges."""
        return self.limits.any_on_brokers

    def mutation_bucket(self, user: str, client_id: str, now_ms: float) -> TokenBucket | None:
        """What the controller takes tokens of for a client's changes; None when they are not limited."""
        limit = self.limits.of(CONTROLLER_MUTATION_RATE, user, client_id)
        return None if limit is None else self.mutations.of(limit, now_ms)

    def charge_connection(self, address: str, now_ms: float) -> int:
        """Counts a new connection of an address (`host_text`). 0 when it may stay; else how long to hold it before it
        is closed, and it does not count."""
        rate = self.limits.connections_of(address)
        if rate is None:
            return 0
        # Whoever has a network has any number of addresses, so their buckets are bounded like those of client ids.
        bucket = self.connections.of(Limit(CONNECTION_CREATION_RATE, rate, "", address), now_ms)
        pause_ms = bucket.charge(1, now_ms)
        if pause_ms:
            bucket.take_back(1, now_ms)
        return min(pause_ms, self.short_pause_ms_max)

    def sweep(self, now_ms: float) -> None:
        """Forgets what counts no more. For a timer that seldom rings."""
        self.connections.sweep(now_ms)
        self.rates.sweep(now_ms)
        self.mutations.sweep(now_ms)


class Meter:
    """Charges one connection. It holds its buckets: a charge is a look-up and a few additions, or only the look-up
    where nothing is limited."""

    __slots__ = ("_client_id", "_held", "_quotas", "_version", "user")

    def __init__(self, quotas: ClientQuotas, user: str) -> None:
        """`user` is the name of the connection's principal."""
        self._quotas = quotas
        self.user = user
        self._client_id = ""
        self._version = quotas.version
        self._held: dict[str, RateBucket | None] = {}

    def bucket(self, key: str, client_id: str, now_ms: float) -> RateBucket | None:
        """What the client is charged to; None where it has no limit."""
        if client_id != self._client_id or self._version != self._quotas.version:
            self._turn_to(client_id)
        try:
            bucket = self._held[key]
        except KeyError:
            return self._fetch(key, now_ms)
        if bucket is None or bucket.kept:
            return bucket
        return self._fetch(key, now_ms)

    def charge(self, key: str, client_id: str, value: float, now_ms: float) -> int:
        """Counts what the client used; for how long it has to pause, in milliseconds."""
        # As `bucket`, in one breath: this is done for every request.
        if client_id != self._client_id or self._version != self._quotas.version:
            self._turn_to(client_id)
        try:
            bucket = self._held[key]
        except KeyError:
            bucket = self._fetch(key, now_ms)
        if bucket is None:
            return 0
        if not bucket.kept:
            bucket = self._fetch(key, now_ms)
            assert bucket is not None, "limits are the same, so there still is one"
        return bucket.charge(value, now_ms)

    def charge_time(self, client_id: str, used_ms: float, now_ms: float) -> int:
        """Counts time that requests of the client took; a limit of 100 is all the time there is."""
        pause_ms = self.charge(REQUEST_PERCENTAGE, client_id, used_ms / 10, now_ms)
        return min(pause_ms, self._quotas.short_pause_ms_max)

    def pay(self, key: str, client_id: str, value: float, now_ms: float) -> int:
        """Counts what the client is about to be given; when that is too much nothing is counted, and this is how long
        to pause before it is asked for again.

        One thing that is more than a limit ever lets through passes while nothing else counts: it is paid for by the
        pauses after it, where no pause before it would ever be long enough.
        """
        bucket = self.bucket(key, client_id, now_ms)
        if bucket is None:
            return 0
        idle = value > bucket.limit * self._quotas.burst_s and bucket.rate(now_ms) <= 0
        pause_ms = bucket.charge(value, now_ms)
        if idle or not pause_ms:
            return 0
        bucket.take_back(value, now_ms)
        return pause_ms

    def note_pause(self, key: str, pause_ms: int, now_ms: float) -> None:
        """The client, as it was last called, pauses because of this limit."""
        bucket = self._held.get(key)
        if bucket is not None:
            bucket.note_pause(pause_ms, now_ms)

    def most(self, key: str, client_id: str) -> float | None:
        """What may be used at once without a pause that could be avoided: ten seconds' worth. None: no limit.

        A fetch reads no more than that, because a reply beyond it could never be sent.
        """
        limit = self._quotas.limits.of(key, self.user, client_id)
        return None if limit is None else limit.value * self._quotas.burst_s

    def _turn_to(self, client_id: str) -> None:
        self._client_id = client_id
        self._version = self._quotas.version
        self._held.clear()

    def _fetch(self, key: str, now_ms: float) -> RateBucket | None:
        limit = self._quotas.limits.of(key, self.user, self._client_id)
        bucket = self._held[key] = None if limit is None else self._quotas.rates.of(limit, now_ms)
        return bucket
