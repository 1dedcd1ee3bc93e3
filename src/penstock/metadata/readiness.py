"""Whether this cluster may have transactions: every registered broker has to know them.

A node of a release without them takes no markers, so what it leads could not be ended. As the coordinator of a group
it shows the offsets from before a transaction that is committed and not marked yet, and the same input would be worked
on twice. So while one is registered nothing begins, grows or ends here, and clients are told what such a node tells
them by itself: COORDINATOR_NOT_AVAILABLE, which they try again. What is decided already goes on: markers, time-outs,
expiry.
"""

from __future__ import annotations

from penstock.metadata.entities import BrokerImage
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.metadata.image import ClusterImage
from penstock.model.ids import NodeId


def waits_for(image: ClusterImage) -> NodeId | None:
    """The first broker that does not know transactions, whether it is alive or not: it may come back as it went."""
    return min((each.id for each in image.brokers.values() if not knows_transactions(each)), default=None)


def knows_transactions(broker: BrokerImage) -> bool:
    return broker.supports(TRANSACTION_VERSION).max > 0


def why(broker: NodeId) -> str:
    """What to tell people."""
    return (
        f"Transactions wait for broker {broker}, whose release does not know them: "
        f"upgrade it, or unregister it if it is gone."
    )
