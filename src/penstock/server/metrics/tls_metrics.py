"""What listeners with TLS tell: when their certificates end, and how handshakes go. Nothing where there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.server.metrics.page import Sample
from penstock.transport.prometheus import COUNTER, GAUGE

if TYPE_CHECKING:
    from penstock.server.reception.tls_door import TlsDoor


def tls_samples(doors: Mapping[str, TlsDoor]) -> Iterator[Sample]:
    """By the name of the listener; the admin port is one of them."""
    for name, door in doors.items():
        labels = {"listener": name}
        ends, words = door.not_after_ms // 1_000, "When the certificate of a listener ends, in seconds since 1970"
        yield Sample("penstock_certificate_not_after_seconds", labels, ends, GAUGE, words)
        yield Sample("penstock_tls_handshakes_total", labels, door.handshakes, COUNTER, "TLS handshakes that were done")
        for cause, failures in list(door.failures.items()):
            yield Sample(
                "penstock_tls_handshake_failures_total",
                {**labels, "cause": cause.value},
                failures,
                COUNTER,
                "TLS handshakes that failed, by cause",
            )
