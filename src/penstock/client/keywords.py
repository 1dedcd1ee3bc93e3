"""The settings of clients as keywords with types, so that editors complete them and mypy knows a wrong one.

What each means, its bounds and its default are in `settings.py`; a test keeps the names of both the same. Kafka's own
names stand beside ours. A setting that is read from a file or the environment may be text there: `ProducerSettings.of`
and its like take such mappings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Literal, TypeAlias, TypedDict

from penstock.client.settings import Partitioner
from penstock.model.secret import Secret

Acks: TypeAlias = Literal[0, 1, -1, "0", "1", "-1", "all"]
Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Spread: TypeAlias = Literal["default", "sticky", "round_robin"] | Partitioner
Protocol: TypeAlias = Literal["classic", "consumer"]
Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
StoreType: TypeAlias = Literal["PEM", "PKCS12", "JKS"]
Reset: TypeAlias = Literal["earliest", "latest", "none"] | timedelta
"""A time is what Kafka calls `by_duration:PT1H`; a setting that comes as text may be spelt so."""


class SecurityKeywords(TypedDict, total=False):
    """What every client takes to make itself safe."""

    client_config: str | None
    security_protocol: SecurityProtocol
    username: str | None
    password: str | Secret | None
    mechanism: Mechanism | None
    sasl_mechanism: Mechanism | None
    cafile: str | None
    certfile: str | None
    keyfile: str | None
    token_provider: Callable[[], str | Awaitable[str]] | None
    sasl_jaas_config: str | Secret | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | Secret | None
    sasl_oauthbearer_scope: str | None
    ssl_truststore_location: str | None
    ssl_truststore_type: StoreType | None
    ssl_truststore_password: str | Secret | None
    ssl_truststore_certificates: str | Secret | None
    ssl_keystore_location: str | None
    ssl_keystore_type: StoreType | None
    ssl_keystore_password: str | Secret | None
    ssl_keystore_key: str | Secret | None
    ssl_keystore_certificate_chain: str | Secret | None
    ssl_key_password: str | Secret | None
    ssl_enabled_protocols: str | Sequence[str]
    ssl_cipher_suites: str | Sequence[str]
    ssl_endpoint_identification_algorithm: Literal["https", ""]


class CommonKeywords(SecurityKeywords, total=False):
    """What every client takes beside `bootstrap_servers`."""

    client_id: str
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


class ProducerKeywords(CommonKeywords, total=False):
    """What a `Producer` takes."""

    metadata_max_age_ms: int
    acks: Acks
    idempotence: bool
    enable_idempotence: bool
    compression: Codec
    compression_type: Codec
    compression_level: int | None
    compression_gzip_level: int | None
    compression_lz4_level: int | None
    compression_zstd_level: int | None
    linger_ms: int
    batch_size: int
    bulk_batch_size: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    max_in_flight: int
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    retries: int
    partitioner: Spread
    partitioner_class: Spread
    create_topics: bool
    allow_auto_create_topics: bool
    transactional_id: str | None
    transaction_timeout_ms: int


class ConsumerKeywords(CommonKeywords, total=False):
    """What a `Consumer` takes."""

    metadata_max_age_ms: int
    group_id: str | None
    group_instance_id: str | None
    group_protocol: Protocol
    group_remote_assignor: str | None
    assignors: str | Sequence[str]
    partition_assignment_strategy: str | Sequence[str]
    offset_reset: Reset
    auto_offset_reset: Reset
    auto_commit: bool
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    isolation_level: Isolation
    check_crcs: bool
    client_rack: str
    create_topics: bool
    allow_auto_create_topics: bool
    exclude_internal_topics: bool
    default_api_timeout_ms: int


class AdminKeywords(CommonKeywords, total=False):
    """What an `Admin` takes."""

    default_api_timeout_ms: int
