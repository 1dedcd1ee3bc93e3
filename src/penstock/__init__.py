"""Penstock: a Kafka-compatible event-streaming platform that installs with pip.

    from penstock import Admin, Consumer, Producer      # asyncio; penstock.blocking has the same names

Importing the package costs nothing: names are fetched when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.model.version import VERSION

if TYPE_CHECKING:
    from penstock.client.admin import Admin
    from penstock.client.consumer import Consumer, GroupMetadata
    from penstock.client.errors import ClientError, TransactionAbortable, TransactionFenced
    from penstock.client.producer import BatchReport, Delivery, PreparedTransaction, Producer, Report
    from penstock.kernels import ConsumerRecord
    from penstock.model.ids import TopicPartition

__version__ = VERSION

__all__ = [
    "Admin",
    "BatchReport",
    "ClientError",
    "Consumer",
    "ConsumerRecord",
    "Delivery",
    "GroupMetadata",
    "PreparedTransaction",
    "Producer",
    "Report",
    "TopicPartition",
    "TransactionAbortable",
    "TransactionFenced",
    "__version__",
]

_HOMES = {
    "Admin": "penstock.client.admin",
    "BatchReport": "penstock.client.producer",
    "ClientError": "penstock.client.errors",
    "Consumer": "penstock.client.consumer",
    "ConsumerRecord": "penstock.kernels",
    "Delivery": "penstock.client.producer",
    "GroupMetadata": "penstock.client.consumer",
    "PreparedTransaction": "penstock.client.producer",
    "Producer": "penstock.client.producer",
    "Report": "penstock.client.producer",
    "TopicPartition": "penstock.model.ids",
    "TransactionAbortable": "penstock.client.errors",
    "TransactionFenced": "penstock.client.errors",
}


if not TYPE_CHECKING:
    # Type checkers would take any name for there: they read the imports above.
    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = getattr(import_module(home), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
