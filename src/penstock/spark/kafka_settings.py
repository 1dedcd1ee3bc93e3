"""kafka.* options of Spark's Kafka connector, as settings of our clients. Pure but for a warning said once.

Below the source, which reads with a consumer's settings, and the sink, which writes with a producer's: each says which
of Kafka's names it refuses and which mean nothing to it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from penstock.client.declaring import secret
from penstock.client.errors import BadSetting
from penstock.client.security_settings import SecuritySettings, texts_of
from penstock.client.settings import RecordSettings, kafka_name
from penstock.spark.errors import BadOption
from penstock.spark.given import nearest

CLIENT_CONFIG_VARIABLE: Final = "PENSTOCK_CLIENT_CONFIG"
"""Where a process finds the login of clusters of which nothing else says how they are reached."""

_AS_IT_IS: Final = frozenset(
    setting.name for setting in fields(SecuritySettings) if setting.metadata["check"] is secret
)
"""Blanks may belong to a password."""


@dataclass(frozen=True)
class KafkaSettings:
    """How one kind of client takes kafka.* options."""

    kind: type[RecordSettings]
    refused: Mapping[str, str]
    """Names that would change what we promise, and what to do instead."""
    not_ours: Collection[str]
    """Names that Kafka's client has and ours has no use for: a warning, once in a process."""
    why_not: str
    """The end of that warning's sentence."""
    log: logging.Logger
    _told: set[str] = field(default_factory=set, init=False)

    def of(self, given: Mapping[str, str]) -> dict[str, str]:
        """Settings by our names, `bootstrap_servers` among them, for options without their `kafka.`.

        What kafka.client.config names is read here, by the driver: executors need not have the file.
        """
        names = {kafka_name(setting): setting.name for setting in fields(self.kind)} | {
            setting.name.replace("_", "."): setting.name for setting in fields(self.kind)
        }
        settings: dict[str, str] = {}
        for name, value in sorted(given.items()):
            if name in self.refused:
                raise BadOption(f"kafka.{name} cannot be set: {self.refused[name]}")
            if name in self.not_ours:
                self._tell_once(name)
            elif name in names:
                settings[names[name]] = value if names[name] in _AS_IT_IS else value.strip()
            elif self._without_meaning(name):
                self._tell_once(name)
            else:
                known = [f"kafka.{each}" for each in (*names, *self.not_ours)]
                raise BadOption(f"there is no option 'kafka.{name}'{nearest(f'kafka.{name}', known)}")
        try:
            settings = self._with_file(settings)
            if not settings.get("bootstrap_servers"):
                raise BadOption("kafka.bootstrap.servers is missing: say where the brokers are, as in 'localhost:9092'")
            self.kind.of(settings)
        except BadSetting as wrong:
            raise BadOption(f"kafka.{wrong}") from None
        return settings

    def _with_file(self, settings: dict[str, str]) -> dict[str, str]:
        path = settings.pop("client_config", None)
        if path is None:
            return settings
        return {**texts_of(self.kind.of_file(path, settings)), **settings}

    def _without_meaning(self, name: str) -> bool:
        """Whether it is one of Java's own for TLS or SASL. Those that name a class to load would change everything."""
        if not name.startswith(("ssl.", "sasl.")):
            return False
        if name.endswith(".class") or name.startswith(("sasl.oauthbearer.", "sasl.kerberos.")):
            raise BadOption(
                f"kafka.{name} cannot be set: this client logs in by PLAIN, SCRAM and tokens, and loads no classes"
            )
        return True

    def _tell_once(self, name: str) -> None:
        if name not in self._told:
            self._told.add(name)
            self.log.warning("kafka.%s has no meaning here and is not used%s", name, self.why_not)
