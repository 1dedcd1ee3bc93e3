"""Draws requests about configs of topics, brokers and groups: names and values that fit, and some that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.compat.answers.chance import Chance
from tests.compat.answers.world import GROUPS, NEVER, PASSING, STEADY

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# Values that keep a topic as it is in every way that another request would notice later, and values that are refused.
TOPIC_CONFIGS = (
    ("retention.ms", ("-1", "100000000000", "-2", "soon", "")),
    ("cleanup.policy", ("delete", "compact", "compact,delete", "vanish", "")),
    ("max.message.bytes", ("2000", "1048588", "-1")),
    ("min.insync.replicas", ("1", "0", "x")),
    ("compression.type", ("producer", "uncompressed", "middle-out")),
    ("segment.bytes", ("1048576", "1", "14")),
    ("flush.messages", ("1", "9223372036854775807", "0")),
    ("message.timestamp.type", ("CreateTime", "Neither")),
    ("retention.bytes", ("-1", "x")),
    ("index.interval.bytes", ("4096", "-1")),
    ("unheard.of", ("1",)),
    ("", ("1",)),
)
BROKER_CONFIGS = (
    ("log.retention.ms", ("-1", "100000000000", "soon")),
    ("message.max.bytes", ("1048588", "2000000", "-1")),
    ("log.flush.interval.messages", ("9223372036854775807", "0")),
    ("node.id", ("2",)),
    ("log.dirs", ("/elsewhere",)),
    ("unheard.of", ("1",)),
)
GROUP_CONFIGS = (
    ("consumer.session.timeout.ms", ("1700000", "1", "x")),
    ("consumer.heartbeat.interval.ms", ("5000", "1", "x")),
    ("unheard.of", ("1",)),
)
CONFIGS = {TOPIC: TOPIC_CONFIGS, BROKER: BROKER_CONFIGS, GROUP: GROUP_CONFIGS}


class ConfigRequests:
    def __init__(self, random: Chance) -> None:
        self._random = random
        self.makers: dict[str, Callable[[Any, int], Any]] = {
            "DescribeConfigs": self._describe,
            "AlterConfigs": lambda made, version: self._alter(made, incremental=False),
            "IncrementalAlterConfigs": lambda made, version: self._alter(made, incremental=True),
        }

    def topic_name(self) -> str:
        return self._random.choice(TOPIC_CONFIGS)[0]

    def topic_value(self) -> str | None:
        return None if self._random.happens(0.1) else self._random.choice(self._random.choice(TOPIC_CONFIGS)[1])

    def _resource(self, *, altered: bool) -> tuple[int, str]:
        choice = self._random.choice
        kind = choice((TOPIC, TOPIC, TOPIC, TOPIC, BROKER, BROKER, GROUP, 99))
        topics = PASSING if altered else (*PASSING, *STEADY)
        names = {
            TOPIC: (*topics, *topics, NEVER, "not a name!"),
            BROKER: ("1", "1", "", "2", "x"),
            GROUP: [name for name in GROUPS if name or not altered],
        }
        return kind, choice(names.get(kind, ("x", "")))

    def _describe(self, made: Any, version: int) -> Any:
        def resource() -> Any:
            kind, name = self._resource(altered=False)
            known = [each for each, _ in CONFIGS.get(kind, TOPIC_CONFIGS)]
            keys = None if self._random.happens(0.4) else self._random.several(lambda: self._random.choice(known))
            return made.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)

        request = made(resources=self._random.several(resource), include_synonyms=self._random.happens(0.5))
        if version >= 3:
            request.include_documentation = self._random.happens(0.2)
        return request

    def _alter(self, made: Any, *, incremental: bool) -> Any:
        def resource() -> Any:
            kind, name = self._resource(altered=True)

            def config() -> Any:
                key, values = self._random.choice(CONFIGS.get(kind, TOPIC_CONFIGS))
                value = self._random.choice(values)
                if not incremental:
                    return made.AlterableConfig(name=key, value=value)
                operation = self._random.choice((SET, SET, SET, DELETE, APPEND, SUBTRACT))
                if operation == DELETE and self._random.happens(0.8):
                    value = None
                return made.AlterableConfig(name=key, config_operation=operation, value=value)

            return made.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=self._random.several(config)
            )

        return made(resources=self._random.several(resource, twice=False), validate_only=self._random.happens(0.3))
