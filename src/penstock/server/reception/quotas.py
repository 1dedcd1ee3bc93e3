"""How much a client may use: what is charged about a request, and for how long its connection pauses.

| quota | charged with | when |
|---|---|---|
| `producer_byte_rate` | the whole request | its reply is made; the reply leaves at once, then the connection is muted |
| `consumer_byte_rate` | the whole reply | before it is told to its session: over the limit an empty one goes instead |
| `request_percentage` | the time that the request held the loop | with the above, or when its reply is made |

The longest pause wins, and is what the reply tells. Fetches of followers and other cluster actions are not charged, nor
is the time of a produce that nobody answers. Changes of partitions are charged by the controller
(`controller/driver.py`), connections when they come (`reception.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from penstock.security.hosts import host_text
from penstock.security.quotas.clients import ClientQuotas, Meter
from penstock.security.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from penstock.security.quotas.rate import WINDOW_MS, WINDOWS

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.security import Principal
    from penstock.server.doors import Toll

PRODUCE: Final = 0
FETCH: Final = 1
CLUSTER_ACTIONS: Final = frozenset({27, 56})
"""WriteTxnMarkers and AlterPartition are for brokers alone."""

ANY_BYTES: Final = 1 << 62


class Metered(Protocol):
    """A connection that can be charged. It keeps its meter."""

    meter: Meter | None
    principal: Principal


class Charged(Protocol):
    """A request that can be charged."""

    api_key: int
    client_id: str | None
    size: int
    toll: FetchToll | None

    @property
    def line(self) -> Metered: ...
    def used_ms(self, now_ms: float) -> float:
        """For how long it has held the loop so far."""


class Quotas(Protocol):
    """Charges requests and says for how long their clients must pause.

    The reply leaves at once with the pause in its `throttle_time_ms`, then the connection starts no further request
    until it is over; so a client that ignores the field is slowed down all the same.
    """

    def throttle_ms(self, request: Charged, reply_bytes: int, now_ms: float) -> int:
        """Charges a request whose reply is made, 0 bytes being none at all."""

    def toll_of(self, request: Charged) -> Toll | None:
        """What a client's fetch has to pay before it is answered."""

    def charge_connection(self, host: str) -> int:
        """0 when a new connection may stay; else how long to hold it before it is closed."""


class Unlimited:
    """No quotas: nobody pauses."""

    __slots__ = ()

    def throttle_ms(self, request: Charged, reply_bytes: int, now_ms: float) -> int:
        return 0

    def toll_of(self, request: Charged) -> Toll | None:
        return None

    def charge_connection(self, host: str) -> int:
        return 0


UNLIMITED: Final = Unlimited()


def _spelled(host: str) -> str:
    try:
        return host_text(host)
    except ValueError:
        return host  # a peer that was gone before it had a name


class FetchToll:
    """What one fetch pays. The driver asks when it knows how large the reply would be."""

    __slots__ = ("_now_ms", "_request", "bytes_max", "paid_bytes", "pause_ms")

    def __init__(self, request: Charged, meter: Meter, monotonic_ms: Callable[[], float]) -> None:
        self._request, self._now_ms = request, monotonic_ms
        most = meter.most(CONSUMER_BYTE_RATE, request.client_id or "")
        self.bytes_max = ANY_BYTES if most is None else int(min(most, ANY_BYTES))
        """What a reply may hold at most: more would never be within the limit."""
        self.paid_bytes = 0
        self.pause_ms: int | None = None
        """How long the client pauses, once it is known what goes out."""

    def pays(self, reply_bytes: int) -> bool:
        """Charges a reply of about that size. False when an empty one has to go out instead."""
        now_ms, request = self._now_ms(), self._request
        meter, client_id = request.line.meter, request.client_id or ""
        assert meter is not None, "it was there when the fetch came"
        time_ms = meter.charge_time(client_id, request.used_ms(now_ms), now_ms)
        bytes_ms = meter.pay(CONSUMER_BYTE_RATE, client_id, reply_bytes, now_ms)
        self.pause_ms = max(time_ms, bytes_ms)
        if not self.pause_ms:
            self.paid_bytes = reply_bytes
            return True
        if not bytes_ms:
            meter.charge(CONSUMER_BYTE_RATE, client_id, -reply_bytes, now_ms)
        meter.note_pause(CONSUMER_BYTE_RATE if bytes_ms > time_ms else REQUEST_PERCENTAGE, self.pause_ms, now_ms)
        return False


class LimitedClients:
    """The quotas of a broker, as its image has them. What serves its connections is told whether there are any."""

    __slots__ = ("_monotonic_ms", "_tell", "_timed", "clients")

    def __init__(self, monotonic_ms: Callable[[], float], window_ms: int = WINDOW_MS, windows: int = WINDOWS) -> None:
        self.clients = ClientQuotas(window_ms, windows)
        self._monotonic_ms = monotonic_ms
        self._timed = False  # whether anybody's time is limited
        self._tell: Callable[[Quotas], None] = lambda _quotas: None

    def on_switch(self, tell: Callable[[Quotas], None]) -> None:
        """Who is told what to charge with: `UNLIMITED` as long as nobody has a limit, so that it costs nothing."""
        self._tell = tell
        tell(self.in_force)

    @property
    def in_force(self) -> Quotas:
        return self if self.clients.limited else UNLIMITED

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.quotas:
            self.clients.follow(image, delta)
            self._timed = REQUEST_PERCENTAGE in self.clients.limits.keys
            self._tell(self.in_force)

    async def sweep(self) -> None:
        """Forgets who has not been heard of for a while."""
        self.clients.sweep(self._monotonic_ms())

    # Charging.

    def throttle_ms(self, request: Charged, reply_bytes: int, now_ms: float) -> int:
        line, client_id = request.line, request.client_id or ""
        meter = line.meter
        if meter is None or meter.user is not line.principal.name:
            meter = self._meter(line)
        api_key = request.api_key
        bytes_ms = time_ms = 0
        if api_key == PRODUCE:
            bytes_ms = meter.charge(PRODUCER_BYTE_RATE, client_id, request.size, now_ms)
        elif api_key == FETCH:
            return self._answered_fetch(request, meter, reply_bytes, now_ms)
        elif api_key in CLUSTER_ACTIONS:
            return 0
        if self._timed and (reply_bytes or api_key != PRODUCE):
            time_ms = meter.charge_time(client_id, request.used_ms(now_ms), now_ms)
        if not (bytes_ms or time_ms):
            return 0
        pause_ms = max(bytes_ms, time_ms)
        meter.note_pause(PRODUCER_BYTE_RATE if bytes_ms > time_ms else REQUEST_PERCENTAGE, pause_ms, now_ms)
        return pause_ms

    def toll_of(self, request: Charged) -> Toll | None:
        line = request.line
        meter = line.meter
        if meter is None or meter.user is not line.principal.name:
            meter = self._meter(line)
        if request.toll is None:
            request.toll = FetchToll(request, meter, self._monotonic_ms)
        return request.toll

    @staticmethod
    def _answered_fetch(request: Charged, meter: Meter, reply_bytes: int, now_ms: float) -> int:
        """What was paid was an estimate; the bytes that really leave are known now."""
        toll = request.toll
        if toll is None:
            return 0  # a follower, or one that came before there were limits
        if toll.pause_ms is None:
            toll.pays(reply_bytes)  # it was refused before anything was read
        elif not toll.pause_ms:
            surplus = reply_bytes - toll.paid_bytes
            meter.charge(CONSUMER_BYTE_RATE, request.client_id or "", surplus, now_ms)
        return toll.pause_ms or 0

    def charge_connection(self, host: str) -> int:
        return self.clients.charge_connection(_spelled(host), self._monotonic_ms())

    def _meter(self, line: Metered) -> Meter:
        meter = line.meter = Meter(self.clients, line.principal.name)
        return meter
