"""Both brokers, secured alike: logins by PLAIN, an authorizer, and a listener without a login beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from tests.compat.answers.settings import PROPERTIES
from tests.compat.authorization import paths
from tests.compat.authorization.cast import ADMIN
from tests.compat.judged import Penstock
from tests.compat.node import Node
from tests.compat.processes import free_ports

SESSIONS_MAX = 16
"""Kafka spreads them over eight tables."""


class OneWay(Penstock):
    """A node of ours whose short way is on or off from its next start on."""

    way = paths.ON

    def command(self) -> list[str]:
        _, *arguments = super().command()
        return [sys.executable, str(Path(paths.__file__)), self.way, str(self._counted), *arguments]

    @property
    def _counted(self) -> Path:
        return self.home / "short-ways"

    def short_ways(self) -> int:
        """How many produces were answered by the short way, in the run that ended last."""
        return int(self._counted.read_text())


def password(user: str) -> str:
    return f"{user}'s own"


def secure(node: Node, users: Iterable[str]) -> int:
    """Gives a node that was not started yet a listener with logins and an authorizer; the port of that listener."""
    (port,) = free_ports(1)
    listeners = (
        f"PLAINTEXT://127.0.0.1:{node.port},CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{node.controller_port}"
    )
    known = "".join(f' user_{user}="{password(user)}"' for user in (ADMIN, *users))
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{ADMIN}" password="{password(ADMIN)}"{known};'
    )
    node.properties.update(PROPERTIES)
    node.properties.update(
        {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "CLIENTS",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": login,
            "listener.name.controller.plain.sasl.jaas.config": login,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN}",
            "delegation.token.secret.key": "the same on all nodes",
            # Who may make a topic by asking for it is a right too.
            "auto.create.topics.enable": "true",
            "max.incremental.fetch.session.cache.slots": str(SESSIONS_MAX),
        }
    )
    return port
