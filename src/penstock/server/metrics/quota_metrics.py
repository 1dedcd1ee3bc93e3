"""What clients with limits use, at scrape: Kafka's `kafka.server:type={Produce,Fetch,Request},user=,client-id=`.

Names of clients are theirs to choose, so only those that use most have series of their own. All others share one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.security.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from penstock.server.metrics.page import Sample
from penstock.transport.prometheus import GAUGE

if TYPE_CHECKING:
    from penstock.security.quotas.clients import ClientQuotas

TOLD_MAX: Final = 100
"""How many clients of each quota are told of by name."""
OTHERS: Final = "(other)"
"""The name of all others together, and of whoever calls itself so."""

_PREFIX: Final = "kafka_server_quota_"
_RESOURCES: Final = {
    PRODUCER_BYTE_RATE: ("Produce", "byte_rate", "Bytes a second, of clients with a limit"),
    CONSUMER_BYTE_RATE: ("Fetch", "byte_rate", "Bytes a second, of clients with a limit"),
    REQUEST_PERCENTAGE: ("Request", "request_time", "Percent of the loop's time, of clients with a limit"),
}


class Use(NamedTuple):
    """What one client uses, and how long it is made to pause."""

    rate: float
    pause_ms: float
    user: str
    client_id: str


def quota_samples(clients: ClientQuotas, now_ms: float) -> Iterator[Sample]:
    by_key: dict[str, list[Use]] = {}
    for (key, user, client_id), bucket in list(clients.rates.items()):
        use = Use(bucket.rate(now_ms), bucket.pause_avg_ms(now_ms), user, client_id)
        by_key.setdefault(key, []).append(use)
    for key, uses in by_key.items():
        resource, name, words = _RESOURCES[key]
        for use in _bounded(uses):
            labels = {"resource": resource, "user": use.user, "clientId": use.client_id}
            yield Sample(_PREFIX + name, labels, round(use.rate, 3), GAUGE, words)
            paused = "How long pauses of clients over their limit are, in milliseconds"
            yield Sample(_PREFIX + "throttle_time", labels, round(use.pause_ms, 3), GAUGE, paused)


def _bounded(uses: list[Use]) -> list[Use]:
    """Those that use most, and the others together: what they use is added up, their pauses are averaged."""
    uses = sorted(uses, key=lambda use: (OTHERS in (use.user, use.client_id), -use.rate))
    named = [use for use in uses[:TOLD_MAX] if OTHERS not in (use.user, use.client_id)]
    others = uses[len(named) :]
    if not others:
        return named
    paused = [use.pause_ms for use in others if use.pause_ms]
    rate = sum(use.rate for use in others)
    return [*named, Use(rate, sum(paused) / len(paused) if paused else 0.0, OTHERS, OTHERS)]
