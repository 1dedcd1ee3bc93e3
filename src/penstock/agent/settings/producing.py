"""The producer's settings out of the agent's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.agent.settings.model import AgentSettings, OutputSettings
from penstock.client.declaring import INT32_MAX
from penstock.client.errors import BadSetting
from penstock.client.security_settings import names_of_security
from penstock.client.settings import CommonSettings, ProducerSettings, keyword_names

OWN: Final[dict[str, str]] = {
    "bootstrap_servers": "bootstrap, at the top of the file",
    "client_id": "name, at the top of the file",
    "acks": "output.acks",
    "idempotence": "output.acks",
    "enable_idempotence": "output.acks",
    "compression": "output.compression",
    "compression_type": "output.compression",
    "linger_ms": "output.linger",
    "buffer_memory": "output.memory",
    "create_topics": "output.create_topics",
    "allow_auto_create_topics": "output.create_topics",
    "delivery_timeout_ms": "nothing: records are tried for ever",
    "retries": "nothing: records are tried for ever",
    "transactional_id": "exactly_once, at the top of the file",
    "transaction_timeout_ms": "nothing: transactions of an agent are open for a second and time out after ten",
}
"""Producer settings that the agent's file has its own words for."""

_SECURITY: Final = frozenset(
    name for name, found in keyword_names(ProducerSettings).items() if found.name in names_of_security()
)

UNKNOWN_TOPIC_AFTER_MS: Final = 60_000
"""Kafka's own max.block.ms: how long a topic that does not exist is asked for."""

_NEVER_FULL_BYTES: Final = 1 << 46
"""The outlet bounds what the producer holds; a second bound would only bring a second way to wait."""

_TOPIC_ASK_MS: Final = 5_000


def producer_name(kafka_name: str) -> str:
    """`request.timeout.ms` as a keyword."""
    return kafka_name.replace(".", "_")


def producer_keywords(bootstrap: str, client_id: str, output: OutputSettings) -> dict[str, Any]:
    """Keywords of `Producer`."""
    given: dict[str, Any] = {producer_name(name): value for name, value in output.kafka.items()}
    given.pop("max_block_ms", None)
    given |= {
        "bootstrap_servers": bootstrap,
        "client_id": client_id,
        "acks": output.acks,
        "compression": output.compression,
        "linger_ms": output.linger_ms,
        "create_topics": output.create_topics,
        "buffer_memory": _NEVER_FULL_BYTES,
        "delivery_timeout_ms": INT32_MAX,
        # Only topics are waited for, in short turns: the outlet decides when it is enough.
        "max_block_ms": min(_TOPIC_ASK_MS, unknown_topic_after_ms(output.kafka)),
    }
    return given


def unknown_topic_after_ms(kafka: Mapping[str, str]) -> int:
    """How long brokers may say that a topic does not exist before its records count as unsendable."""
    given = next((value for name, value in kafka.items() if producer_name(name) == "max_block_ms"), None)
    return UNKNOWN_TOPIC_AFTER_MS if given is None else int(given)


def keywords_of(settings: AgentSettings) -> dict[str, Any]:
    return producer_keywords(settings.bootstrap, settings.client_id, settings.output)


def refusal(keyword: str, value: str) -> str:
    """Why a producer would not take a setting; empty when it does."""
    try:
        if keyword in _SECURITY:
            ProducerSettings.read({keyword: value})  # what it needs beside it may stand elsewhere
        else:
            ProducerSettings.of({keyword: value})
    except BadSetting as wrong:
        return wrong.why
    return ""


def security_refusal(kafka: Mapping[str, str]) -> str:
    """Why what is said of TLS and logins does not fit together; empty when it does."""
    given = {producer_name(name): value for name, value in kafka.items()}
    try:
        ProducerSettings.of({name: value for name, value in given.items() if name in _SECURITY})
    except BadSetting as wrong:
        return wrong.why
    return ""


def transaction_refusal(kafka: Mapping[str, str]) -> str:
    """Why a producer with these settings could have no transactions; empty when it can."""
    given = {producer_name(name): value for name, value in kafka.items()}
    plain = {name: value for name, value in given.items() if name not in _SECURITY}
    try:
        ProducerSettings.of({**plain, "transactional_id": "asked"})
    except BadSetting as wrong:
        return wrong.why
    return ""


def common_keywords(producer: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a producer's that every client has: to look at the same cluster with the same login."""
    return {name: value for name, value in producer.items() if name in keyword_names(CommonSettings)}
