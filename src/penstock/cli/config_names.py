"""Names of configs on the command line: one that nobody knows is refused, with the one that was perhaps meant.

Brokers refuse unknown configs of topics, but keep unknown ones of brokers for plug-ins, as Apache Kafka does. A typing
mistake would be stored, and change nothing. The cluster may be of another release or another make, so what we do not
know is asked of it before it is called unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import click

from penstock.model.closest import did_you_mean

if TYPE_CHECKING:
    from penstock.client.admin import Admin


async def check_broker_configs(admin: Admin, broker: int | None, names: Iterable[str]) -> None:
    """UsageError when one of the names is no property of brokers."""
    _refuse(await unknown_broker_configs(admin, broker, names))


async def unknown_broker_configs(admin: Admin, broker: int | None, names: Iterable[str]) -> list[str]:
    """A sentence for each name that is no property of brokers, neither here nor there, and was never set."""
    from penstock.model.config.broker import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS, broker_definition, known_to_plugins

    unknown = [name for name in names if broker_definition(name) is None and not known_to_plugins(name)]
    if not unknown:
        return []
    from penstock.client.admin.configs import ConfigResource

    asked = broker if broker is not None else (await admin.describe_cluster(fenced=False)).brokers[0].id
    resources = [ConfigResource.cluster(), ConfigResource.broker(asked)]
    theirs = {name for configs in (await admin.describe_configs(resources)).checked().values() for name in configs}
    return _words((name for name in unknown if name not in theirs), {*BROKER_CONFIGS, *DYNAMIC_ONLY_CONFIGS, *theirs})


async def check_taken_back(admin: Admin, topic: str, names: Iterable[str]) -> None:
    """UsageError when a config that shall go back to its default is none of topics: brokers say nothing to that."""
    from penstock.model.config.topic import TOPIC_CONFIGS

    unknown = [name for name in names if name not in TOPIC_CONFIGS]
    if unknown:
        theirs = (await admin.describe_topic(topic, offsets=False)).configs
        _refuse(_words((name for name in unknown if name not in theirs), {*TOPIC_CONFIGS, *theirs}))


def _words(unknown: Iterable[str], known: Collection[str]) -> list[str]:
    return [f"{name} is not a property{did_you_mean(name, sorted(known))}" for name in unknown]


def _refuse(words: list[str]) -> None:
    if words:
        raise click.UsageError("\n".join(words))
