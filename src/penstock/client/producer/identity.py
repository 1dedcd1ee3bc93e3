"""Who the producer is to brokers: a producer id and an epoch that rises when sequence numbers start again."""

from __future__ import annotations

from penstock.client.cluster_view import ClusterView
from penstock.client.errors import refusal
from penstock.model.errors import COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest

EPOCH_MAX = 0x7FFF
_NO_TIMEOUT_MS = 0x7FFFFFFF
TRY_AGAIN = (COORDINATOR_LOAD_IN_PROGRESS.code, COORDINATOR_NOT_AVAILABLE.code)


class Identity:
    """`current` is (producer id, epoch), or None until a broker has given one."""

    __slots__ = ("bumps", "current")

    def __init__(self) -> None:
        self.current: tuple[int, int] | None = None
        self.bumps = 0

    async def obtain(self, view: ClusterView) -> None:
        """Asks any broker for an id of our own. LinkError or ClientError."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        reply = await view.ask_any(request)
        if reply.error_code:
            raise refusal(reply.error_code, None, "InitProducerId")
        self.current = (reply.producer_id, reply.producer_epoch)

    def bump(self) -> None:
        """The next epoch; None when they are used up and a new id is needed.

        Without a transactional id nobody else has this producer id, so the epoch is ours to raise (KIP-360).
        """
        assert self.current is not None
        self.bumps += 1
        producer_id, epoch = self.current
        self.current = (producer_id, epoch + 1) if epoch < EPOCH_MAX - 1 else None

    def forget(self) -> None:
        """A broker does not take this identity any more."""
        self.current = None
