"""The settings of transactions, read live: a dynamic change counts from the next look."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.model.config.broker import BROKER_CONFIGS
from penstock.model.config.definition import ConfigValue
from penstock.model.config.settings import BrokerSettings


class TransactionSettings:
    """Broker properties by Kafka's names; `number` and `flag` read one."""

    __slots__ = ("flag", "number")

    def __init__(self, number: Callable[[str], int], flag: Callable[[str], bool]) -> None:
        self.number = number
        self.flag = flag

    @classmethod
    def fixed(cls, properties: Mapping[str, ConfigValue] | None = None) -> TransactionSettings:
        """Kafka's defaults with `properties` over them."""
        values = {name: row.default_value for name, row in BROKER_CONFIGS.items()} | dict(properties or {})
        settings = BrokerSettings({}, values)
        return cls(settings.number, settings.flag)

    @property
    def timeout_max_ms(self) -> int:
        return self.number("transaction.max.timeout.ms")

    @property
    def two_phase_commit(self) -> bool:
        return self.flag("transaction.two.phase.commit.enable")

    @property
    def timed_out_interval_ms(self) -> int:
        return self.number("transaction.abort.timed.out.transaction.cleanup.interval.ms")

    @property
    def expiration_ms(self) -> int:
        return self.number("transactional.id.expiration.ms")

    @property
    def expired_interval_ms(self) -> int:
        return self.number("transaction.remove.expired.transaction.cleanup.interval.ms")

    @property
    def offsets_partitions(self) -> int:
        """How many partitions the offsets topic gets when it is made."""
        return self.number("offsets.topic.num.partitions")
