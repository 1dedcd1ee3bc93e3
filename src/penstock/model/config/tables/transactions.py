"""Transactions and their state topic."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import ACCEPTED, ACTED, BOOLEAN, CLUSTER_WIDE, HIGH, INT, LOW, SHORT
from penstock.model.config.validators import at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
TRANSACTIONS: tuple[ConfigDef, ...] = (
    ConfigDef(
        "transaction.max.timeout.ms", INT, 900_000, at_least(1), HIGH,
        "The longest timeout a producer may ask for its transactions.", ACTED),
    ConfigDef(
        "transactional.id.expiration.ms", INT, 604_800_000, at_least(1), HIGH,
        "How long an unused transactional id is remembered.", ACTED),
    ConfigDef(
        "transaction.partition.verification.enable", BOOLEAN, True, None, LOW,
        "Whether a leader asks the coordinator before it takes the first batch of a transaction.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW,
        "Whether producers may prepare a transaction that an outside coordinator ends.", ACTED),
    ConfigDef(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1), LOW,
        "How often transactions that ran out of time are aborted.", ACTED),
    ConfigDef(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1), LOW,
        "How often expired transactional ids are removed.", ACTED),
    ConfigDef(
        "transaction.state.log.num.partitions", INT, 50, at_least(1), HIGH,
        "The partitions of the transaction state topic. Changing it later loses track of transactions.", ACTED),
    ConfigDef(
        "transaction.state.log.replication.factor", SHORT, 3, at_least(1), HIGH,
        "The replicas of the transaction state topic. It is not created until that many brokers are there.", ACTED),
    ConfigDef(
        "transaction.state.log.min.isr", INT, 2, at_least(1), HIGH,
        "The in-sync replicas that a write to the transaction state topic needs.", ACTED),
    ConfigDef(
        "transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1), HIGH,
        "The segment size of the transaction state topic. Less than 1 MiB counts as 1 MiB.", ACTED),
    ConfigDef(
        "transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1), HIGH,
        "How many bytes Kafka reads at a time when it loads transactions.", ACCEPTED),
    ConfigDef(
        "add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1), HIGH,
        "The longest pause before a broker adds a partition to a busy transaction again. The first is 1 ms.", ACTED),
    ConfigDef(
        "add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0), HIGH,
        "For how long a broker tries to add a partition to a busy transaction before it tells the client so.", ACTED),
)
# fmt: on
