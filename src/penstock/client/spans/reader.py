"""`SpanReader`: settings and connections for reads of spans."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.lookups import OffsetLookup
from penstock.client.consumer.offsets import READ_UNCOMMITTED
from penstock.client.errors import BadSetting, Closed
from penstock.client.retry import Backoff
from penstock.client.settings import ConsumerSettings
from penstock.client.spans.calls import Caller
from penstock.client.spans.reading import Averages, Reading
from penstock.client.spans.shapes import PIECE_BYTES, OnTrimmed, Piece, Span, SpanEnd
from penstock.kernels import unfilled

# A span is known to be there and wanted as a whole, so it is fetched in larger parts than records somebody waits for.
FETCH_BYTES: Final = 16 << 20
PARTITION_BYTES: Final = 8 << 20

# glibc gives freed memory back to the kernel at once and fetches it anew, page by page, until it has seen a block of
# this size come and go. Replies and columns come and go all the time.
_LARGEST_RECYCLED_BYTES: Final = (32 << 20) - (8 << 10)


class SpanReader:
    """Reads spans, as often as one likes; connections are kept from read to read. Close it, or use `async with`.

    Settings are those of `ConsumerSettings` that have to do with fetching, as keywords.
    """

    def __init__(self, *, bootstrap_servers: str | Sequence[str] | None = None, **settings: Any) -> None:
        given = {"fetch_max_bytes": FETCH_BYTES, "max_partition_fetch_bytes": PARTITION_BYTES, **settings}
        self.settings = ConsumerSettings.of({"bootstrap_servers": bootstrap_servers, **given})
        options = self.settings
        try:
            self._view = ClusterView(
                options.bootstrap_servers,
                timeout_ms=options.request_timeout_ms,
                client_id=options.client_id,
                metadata_max_age_ms=options.metadata_max_age_ms,
                backoff_ms=options.retry_backoff_ms,
                backoff_max_ms=options.retry_backoff_max_ms,
                security=options.dial_security(),
            )
        except ValueError as wrong:
            raise BadSetting(f"bootstrap_servers: {wrong}") from None
        backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
        self._lookup = OffsetLookup(self._view, isolation=READ_UNCOMMITTED, backoff=backoff)
        self._caller = Caller(self._view, options)
        self._averages = Averages()
        self._closed = False
        unfilled(_LARGEST_RECYCLED_BYTES)  # given back as soon as it is made, and never touched

    async def __aenter__(self) -> SpanReader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hangs up. A read that is under way ends with an error."""
        self._closed = True
        self._caller.close()
        self._view.close()

    def read(
        self, spans: Sequence[Span], *, batch_bytes: int = PIECE_BYTES, on_trimmed: OnTrimmed | None = None
    ) -> AsyncIterator[Piece | SpanEnd]:
        """All records of the spans, in pieces of about `batch_bytes`, and a `SpanEnd` after the last of each span.

        Pieces of a span come in order; spans come as brokers answer. Finish one read before you begin another.

        What lies before the start of the log is a gap; `on_trimmed` hears of it before any record that follows.

        SpanLost: a span is not there any more (TopicReplaced, TopicGone), or its log ends before it does (EndLost).
        CorruptBatch: records that cannot be read. Another ClientError: brokers did not answer for
        `default_api_timeout_ms`, or refused.
        """
        if self._closed:
            raise Closed("the reader is closed")
        reading = Reading(
            self._view,
            self._caller,
            self._lookup,
            self.settings,
            self._averages,
            spans,
            max(batch_bytes, 1),
            on_trimmed,
        )
        return reading.items()
