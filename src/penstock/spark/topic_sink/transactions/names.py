"""Transactional ids of one query. Pure.

    penstock-spark-<query>-driver              who decides; its epoch fences every other driver of the query
    penstock-spark-<query>-<run>-<slot>        the pool: one for each task of a batch, used batch after batch
    penstock-spark-<query>-<run>-x<epoch>.<n>  an attempt that is not the first one of its task; used once

`run` names the driver's process, so that nobody begins anew under an id that another driver may have decided on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.client.producer.transactions.prepared import ProducerEpoch

MARK_FILE: Final = "penstock-decisions.json"
"""In the checkpoint of a query: which ledger has its decisions."""
PREFIX: Final = "penstock-spark-"
"""Whoever writes with ACLs allows this prefix."""


def driver_id(query_id: str) -> str:
    return f"{PREFIX}{query_id}-driver"


def pool_id(query_id: str, run: str, slot: int) -> str:
    return f"{PREFIX}{query_id}-{run}-{slot}"


def pool_ids(query_id: str, run: str, slots: int) -> tuple[str, ...]:
    return tuple(pool_id(query_id, run, slot) for slot in range(slots))


def extra_id(query_id: str, run: str, driver: ProducerEpoch, attempt: int) -> str:
    """Of a second attempt. `driver` is of the plan that it belongs to, `attempt` Spark's own number of it."""
    return f"{extra_prefix(query_id, run, driver)}{attempt}"


def extra_prefix(query_id: str, run: str, driver: ProducerEpoch) -> str:
    return f"{PREFIX}{query_id}-{run}-x{driver.producer_id}.{driver.epoch}."


def pattern_of_runs(query_id: str, runs: Iterable[str]) -> str:
    """RE2 for every id that drivers of these runs gave to tasks."""
    return f"{PREFIX}{_quoted(query_id)}-({'|'.join(map(_quoted, runs))})-.*"


def pattern_of(prefix: str) -> str:
    """RE2 for every id that begins so."""
    return _quoted(prefix) + ".*"


def _quoted(text: str) -> str:
    return "".join(each if each.isalnum() or each in "-_" else f"\\{each}" for each in text)
