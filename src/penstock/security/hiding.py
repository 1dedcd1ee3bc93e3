"""Which properties hold secrets, and properties as they may be shown in logs, `config print` and answers.

A broker's property is secret when Kafka types it as a password, with any listener prefix, and when nobody knows it: it
may belong to a plug-in. Names of clients are many and of several libraries, so these go by their words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from penstock.model.config import broker_definition
from penstock.model.secret import HIDDEN

# Words of names that hold secrets in Java's, librdkafka's and kafka-python's spelling, and in those of other systems.
_WORDS: Final = re.compile(
    r"(?i)passw(or)?d|passphrase|secret|jaas|credential|private|token(?!auth|\.endpoint|\.max|\.expiry)|keystore\.key$"
    r"|ssl[._]key[._]pem|certificate\.chain$|truststore\.certificates$|basic\.auth|user\.info|api[._]?key|assertion(?!\.(claim|algorithm))"
)
_HARMLESS: Final = re.compile(r"(?i)\.(location|url|type|file|class|claim\.name|ms|seconds|id)$")


def secret_on_brokers(name: str) -> bool:
    """Whether DescribeConfigs must keep the value of a broker's property to itself."""
    row = broker_definition(name)
    return row is None or row.sensitive


def secret_in_clients(name: str) -> bool:
    """Whether the value of a client's, agent's or pipeline's property must not be shown."""
    row = broker_definition(name)
    if row is not None:
        return row.sensitive
    return _WORDS.search(name) is not None and _HARMLESS.search(name) is None


def shown(properties: Mapping[str, str], *, broker: bool) -> dict[str, str]:
    """The properties with `[hidden]` where a secret stands."""
    secret = secret_on_brokers if broker else secret_in_clients
    return {name: HIDDEN if secret(name) else value for name, value in properties.items()}
