"""Topics that are somebody's memory: whether they keep the last value of every key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.client.admin.configs import ConfigResource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.client.admin.admin import Admin
    from penstock.client.admin.configs import ConfigEntry

POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"


async def settings_of(admin: Admin, topic: str) -> Mapping[str, ConfigEntry]:
    """What is set on a topic; nothing for a login that may not see it."""
    resource = ConfigResource.topic(topic)
    return (await admin.describe_configs([resource])).done.get(resource, {})


def forgetful_policy(settings: Mapping[str, ConfigEntry]) -> str | None:
    """The `cleanup.policy` of a topic that does not keep the last value of every key for ever; None when it does.

    Who may not see the settings is believed to have made the topic with care.
    """
    policy = settings.get(POLICY)
    return None if policy is None or policy.value == COMPACT else policy.value
